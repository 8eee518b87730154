// Links: dials servers, sends setups, and handles the end of a stream.
#include "server/process/links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.hpp"
#include "base/require.hpp"

namespace syncopate::server {

namespace {

constexpr std::chrono::milliseconds kTurn{50};
constexpr std::chrono::milliseconds kBetweenLooks{100};  // calls of WorkerOptions::while_waiting

std::exception_ptr error_of(ErrorKind kind, const std::string& text) {
  try {
    raise_error(kind, text);
  } catch (const Error&) {
    return std::current_exception();
  }
}

std::string text_of(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload.bytes.data()), payload.bytes.size()};
}

}  // namespace

Links::Links(const WorkerOptions& options, Take take)
    : options_(options),
      take_(std::move(take)),
      process_(drawn_process()),
      links_(options.servers.size()),
      streams_(end_options(options.access, {.role = streams::Identity::Role::worker, .index = options.worker},
                           options.log)) {
  for (std::size_t server = 0; server < servers(); ++server) dial(server, options.timeout);
  keeper_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
}

Links::~Links() {
  {
    const base::Lock lock(mutex_);
    keeper_.request_stop();
    has_left_ = true;  // the ends of the streams below are not reported
  }
  lost_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  std::vector<std::shared_ptr<streams::Stream>> streams;
  {
    const base::Lock lock(mutex_);
    streams.swap(retired_);
    for (Link& link : links_) streams.push_back(std::exchange(link.stream, nullptr));
  }
  for (const auto& stream : streams)
    if (stream) stream->end();
}

std::string Links::where(std::size_t server) const {
  return fmt::format("server {} at {}", server, options_.servers[server]);
}

void Links::dial(std::size_t server, std::chrono::milliseconds patience) {
  std::uint64_t life = 0;
  {
    const base::Lock lock(mutex_);
    life = ++links_[server].life;
    links_[server].is_welcome = false;
  }
  std::shared_ptr<streams::Stream> stream = streams_.dial(
      {.address = options_.servers[server], .server = static_cast<std::int32_t>(server), .patience = patience},
      {.received = [this, server, life](Payload bytes) { receive(server, life, std::move(bytes)); },
       .ended = [this, server, life](const streams::Ending& ending) { lose(server, life, ending); }});
  const base::Lock lock(mutex_);
  Link& link = links_[server];
  if (link.life == life)
    link.stream = std::move(stream);
  else
    retired_.push_back(std::move(stream));  // it ended before `dial` returned
}

/// The setup carries the step from which this worker begins. After all servers have welcomed it, it only resumes (0).
void Links::greet(std::size_t server) {
  std::shared_ptr<streams::Stream> stream;
  Message setup{.kind = MessageKind::setup, .version = process_};
  Payload body;
  {
    const base::Lock lock(mutex_);
    stream = links_[server].stream;
    body = payload_of(setup_);
    links_[server].welcome.reset();
    setup.first = renewed_ ? 0 : entry_.step;
    setup.step = renewed_ ? 0 : entry_.meeting;
    setup.last = renewed_ ? 0 : 1;
    setup.block = origins_;
  }
  if (!stream) return;
  stream->send(0, head_of(setup), std::move(body));
}

Entry Links::introduce(const Setup& setup) {
  {
    const base::Lock lock(mutex_);
    setup_ = setup.bytes();
  }
  Entry sent, corrected = greet_all(sent);
  do {  // at least once: every server receives the number of all servers' tables
    corrected = greet_all(sent = corrected);
  } while (!may_begin(sent, corrected, setup.first_step));
  return corrected;
}

/// The entry with the corrections of all servers' welcomes.
Entry Links::greet_all(Entry entry) {
  {
    const base::Lock lock(mutex_);
    entry_ = entry;
  }
  for (std::size_t server = 0; server < servers(); ++server) greet(server);
  bool are_all_here = false;
  // The keeper may greet a server again after the wait, so the answers are read within it.
  wait_for(clock_.now() + options_.timeout, [&]() SYNCOPATE_REQUIRES(mutex_) {
    are_all_here = is_answered();
    if (!are_all_here) return false;
    for (const Link& link : links_) entry.correct_by(*link.welcome);
    identify_servers();
    return true;
  });
  require_whole();
  if (!are_all_here)
    throw Timeout(fmt::format("not all servers have accepted the job within {} ms", options_.timeout.count()));
  return entry;
}

/// Fails if a server has lost its tables, or was restored from a snapshot, while others went on. Law: a server has a
/// worker's update only after it has received from that worker the number of all servers' tables.
void Links::identify_servers() {
  std::uint64_t key = 0;
  for (const Link& link : links_) key = base::mixed(key ^ link.welcome->version);
  origins_ = static_cast<std::uint32_t>(key >> 32) | 1;
  const bool belong_together = std::ranges::all_of(links_, [&](const Link& link) SYNCOPATE_REQUIRES(mutex_) {
    const bool is_known = link.welcome->block != 0;
    return (!is_known || link.welcome->block == origins_) && link.welcome->step == links_[0].welcome->step;
  });
  if (belong_together || failure_) return;
  std::string states;
  for (std::size_t server = 0; server < links_.size(); ++server) {
    const Message& welcome = *links_[server].welcome;
    states += fmt::format("{}{} is at step {} of a start from step {}", server == 0 ? "" : ", ", where(server),
                          std::max(welcome.least, welcome.step), welcome.step);
  }
  failure_ = error_of(
      ErrorKind::mismatch,
      fmt::format("the servers hold different states of the job, because they were not all restarted together: {}; "
                  "restart all servers, then the workers: they resume from the newest snapshot that all servers have",
                  states));
}

bool Links::is_answered() const {
  return std::ranges::all_of(links_, [](const Link& link) { return link.welcome.has_value(); });
}

void Links::open(const std::function<void()>& begin, std::function<void(std::size_t)> renewed) {
  const base::Lock renewing(renewing_);
  {
    const base::Lock lock(mutex_);
    renewed_ = std::move(renewed);
  }
  begin();
}

void Links::send(Request request) {
  std::shared_ptr<streams::Stream> stream;
  {
    const base::Lock lock(mutex_);
    const Link& link = links_[request.server];
    if (!link.stream || !link.is_welcome) return;
    stream = link.stream;
    statistics_.pushed_bytes += request.message.body.bytes.size();
  }
  stream->send(request.priority, head_of(request.message), std::move(request.message.body));
}

/// A server that is being reached again gets the message once it has answered.
void Links::leave() {
  std::vector<std::size_t> welcome;
  {
    const base::Lock lock(mutex_);
    has_left_ = true;
    for (std::size_t server = 0; server < links_.size(); ++server)
      if (links_[server].is_welcome) welcome.push_back(server);
  }
  for (const std::size_t server : welcome) finish(server);
}

void Links::finish(std::size_t server) {
  send({server, ~std::uint64_t{0}, {.kind = MessageKind::finish}});
  std::shared_ptr<streams::Stream> stream;
  {
    const base::Lock lock(mutex_);
    stream = links_[server].stream;
  }
  if (stream) stream->close({});
}

/// Runs on: the thread that runs the streams.
void Links::receive(std::size_t server, std::uint64_t life, Payload bytes) {
  const std::size_t length = bytes.bytes.size();
  Message message = message_of(std::move(bytes), false);
  if (message.kind == MessageKind::refuse) {
    const auto kind = message.block <= static_cast<std::uint32_t>(ErrorKind::system_failure)
                          ? static_cast<ErrorKind>(message.block)
                          : ErrorKind::remote_failure;
    return fail(error_of(kind, fmt::format("{}: {}", where(server), text_of(message.body))));
  }
  const bool is_welcome = message.kind == MessageKind::welcome;
  {
    const base::Lock lock(mutex_);
    Link& link = links_[server];
    if (link.life != life) return;
    if (!is_welcome && !link.is_welcome)
      return;  // meant for the worker's previous process; the server repeats it after the welcome
    statistics_.pulled_bytes += length - kHeadBytes;
  }
  take_(server, message);  // a welcome too before it counts: the worker that waits for it then has its contents
  if (is_welcome && !renew(server, life, message)) return;
  const base::Lock lock(mutex_);
  ++arrivals_;
}

/// Returns false if the stream has ended.
bool Links::renew(std::size_t server, std::uint64_t life, const Message& welcome) {
  const base::Lock renewing(renewing_);
  std::function<void(std::size_t)> renewed;
  bool has_left = false;
  {
    const base::Lock lock(mutex_);
    Link& link = links_[server];
    if (link.life != life) return false;
    link.is_welcome = true;
    link.welcome = welcome;
    newest_ = std::max(newest_, welcome.least);
    renewed = renewed_;
    has_left = has_left_;
  }
  if (renewed) renewed(server);
  if (has_left) finish(server);
  return true;
}

/// Runs on: the thread that runs the streams. The keeper redials if another stream can recover from the loss.
void Links::lose(std::size_t server, std::uint64_t life, const streams::Ending& ending) {
  if (ending.failure && *ending.failure != ErrorKind::peer_lost)
    fail(error_of(*ending.failure, fmt::format("{}: {}", where(server), ending.reason)));
  const base::Lock lock(mutex_);
  Link& link = links_[server];
  if (link.life != life) return;
  ++link.life;
  link.is_welcome = false;
  if (link.stream) retired_.push_back(std::exchange(link.stream, nullptr));
  if (!has_left_ && !failure_)
    options_.log.write(LogLevel::warning,
                       fmt::format("worker {}: {} is out of reach: {}", options_.worker, where(server), ending.reason));
  lost_.notify_all();
}

/// Runs on: `keeper_`. Streams are destroyed and dialled here, because callbacks must not.
void Links::keep(const std::stop_token& stop) {
  std::vector<std::optional<base::Time>> lost_since(servers());
  while (!stop.stop_requested()) {
    std::vector<std::shared_ptr<streams::Stream>> retired;
    std::vector<std::size_t> broken;
    {
      base::Lock lock(mutex_);
      const base::Time turn_end = clock_.now() + kTurn;
      while (!stop.stop_requested() && retired_.empty() && lost_.wait_until(lock, turn_end)) continue;
      retired.swap(retired_);
      for (std::size_t server = 0; server < links_.size(); ++server)
        if (!setup_.empty() && !has_left_ && !failure_ && !links_[server].stream) broken.push_back(server);
    }
    for (const auto& stream : retired) stream->end();
    retired.clear();
    for (const std::size_t server : broken) {
      if (stop.stop_requested()) return;
      std::optional<base::Time>& since = lost_since[server];
      if (!since) since = clock_.now();
      if (redial(server, clock_.now() - *since)) since.reset();
    }
  }
}

/// Returns whether the server was reached again.
bool Links::redial(std::size_t server, base::Duration lost) {
  try {
    dial(server, kAttempt);
    greet(server);
    const base::Lock lock(mutex_);
    ++statistics_.reconnections;
    return true;
  } catch (const PeerLost& error) {
    if (lost >= options_.timeout)
      fail(error_of(ErrorKind::peer_lost, fmt::format("{} has been out of reach for {:.0f} s: {}", where(server),
                                                      base::seconds(lost), error.what())));
  } catch (const Error&) {
    fail(std::current_exception());
  }
  return false;
}

void Links::fail(std::exception_ptr failure) {
  {
    const base::Lock lock(mutex_);
    if (!failure_ && !has_left_) failure_ = std::move(failure);
  }
  streams_.wake();
}

std::uint64_t Links::arrivals() const {
  const base::Lock lock(mutex_);
  return arrivals_;
}

std::uint64_t Links::wait_beyond(std::uint64_t seen, base::Time deadline, std::string_view for_what) {
  wait_for(deadline, [&]() SYNCOPATE_REQUIRES(mutex_) { return arrivals_ > seen; });
  const base::Lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (arrivals_ > seen) return arrivals_;
  std::string broken;
  for (std::size_t server = 0; server < links_.size(); ++server)
    if (!links_[server].stream)
      broken += fmt::format("{}{}", broken.empty() ? "; out of reach: " : ", ", where(server));
  throw Timeout(
      fmt::format("the weights of '{}' did not come within {} ms{}", for_what, options_.timeout.count(), broken),
      {.rank = static_cast<int>(options_.worker), .operation = "sync", .tensor = std::string(for_what)});
}

void Links::wait_for(base::Time deadline, const std::function<bool()>& is_here) {
  const auto is_over = [&] {
    const base::Lock lock(mutex_);
    return failure_ || is_here();
  };
  if (!options_.while_waiting) {
    streams_.wait(deadline, is_over);
    return;
  }
  while (!streams_.wait(std::min<base::Time>(deadline, clock_.now() + kBetweenLooks), is_over) &&
         clock_.now() < deadline)
    options_.while_waiting();
}

void Links::require_whole() const {
  const base::Lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

Clock Links::newest() const {
  const base::Lock lock(mutex_);
  return newest_;
}

WorkerStatistics Links::statistics() const {
  const base::Lock lock(mutex_);
  return statistics_;
}

}  // namespace syncopate::server
