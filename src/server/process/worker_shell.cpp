// WorkerShell: a worker's links to all servers, each with one stream after another.
#include "server/process/worker_shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.hpp"

namespace syncopate::server {

namespace {

std::exception_ptr error_of(ErrorKind kind, const std::string& text) {
  try {
    raise_error(kind, text);
  } catch (const Error&) {
    return std::current_exception();
  }
}

}  // namespace

WorkerShell::WorkerShell(Options options, Dialler dial, std::function<void()> ask,
                         std::shared_ptr<const base::Clock> clock)
    : options_(std::move(options)),
      dial_(std::move(dial)),
      ask_(std::move(ask)),
      clock_(std::move(clock)),
      links_(options_.servers.size()) {
  for (Link& link : links_) link.lost = clock_->now();
}

std::string WorkerShell::where(std::size_t server) const {
  return fmt::format("server {} at {}", server, options_.servers[server]);
}

void WorkerShell::turn() {
  std::vector<std::size_t> due;
  {
    const base::Lock lock(mutex_);
    if (failure_ || has_left_) return;
    for (std::size_t server = 0; server < links_.size(); ++server) {
      if (links_[server].phase != Link::Phase::away) continue;
      links_[server].phase = Link::Phase::dialling;
      due.push_back(server);
    }
  }
  for (const std::size_t server : due)
    dial_(server, {.reached = [this, server](auto stream) { return reach(server, std::move(stream)); },
                   .failed = [this, server](const std::exception_ptr& why) { miss(server, why); }});
}

void WorkerShell::end() {
  std::vector<std::shared_ptr<streams::Stream>> streams;
  {
    const base::Lock lock(mutex_);
    has_left_ = true;  // the ends of the streams are not reported
    for (Link& link : links_) streams.push_back(std::exchange(link.stream, nullptr));
  }
  for (const auto& stream : streams)
    if (stream) stream->end();
}

/// Runs on: the thread that runs the streams.
streams::StreamEvents WorkerShell::reach(std::size_t server, std::shared_ptr<streams::Stream> stream) {
  std::optional<HelloToSend> hello;
  {
    const base::Lock lock(mutex_);
    Link& link = links_[server];
    link.stream = std::move(stream);
    link.phase = Link::Phase::reached;
    if (!setup_.empty()) {
      ++statistics_.reconnections;
      hello = hello_to(link);
    }
  }
  if (hello) hello->send();
  return {.received = [this, server](Payload bytes) { receive(server, std::move(bytes)); },
          .ended = [this, server](const streams::Ending& ending) { lose(server, ending); }};
}

/// A server that does not answer is dialled again until the timeout.
void WorkerShell::miss(std::size_t server, const std::exception_ptr& why) {
  base::Duration lost{};
  {
    const base::Lock lock(mutex_);
    links_[server].phase = Link::Phase::away;
    lost = clock_->now() - links_[server].lost;
  }
  try {
    std::rethrow_exception(why);
  } catch (const PeerLost& error) {
    if (lost >= options_.timeout)
      fail(error_of(ErrorKind::peer_lost, fmt::format("{} has been out of reach for {:.1f} s: {}", where(server),
                                                      base::seconds(lost), error.what())));
  } catch (const Error&) {
    fail(why);
  }
  ask_();
}

/// The setup has the step from which this worker begins. Once the worker has begun, it only resumes (0).
WorkerShell::HelloToSend WorkerShell::hello_to(Link& link) const {
  link.phase = Link::Phase::introduced;
  link.welcome.reset();
  return {link.stream,
          {.process = options_.process,
           .origins = told_origins_,
           .is_new = !has_begun_,
           .step = has_begun_ ? 0 : entry_.step,
           .meeting = has_begun_ ? 0 : entry_.meeting,
           .setup = payload_of(setup_)}};
}

std::vector<WorkerShell::HelloToSend> WorkerShell::hellos_to_all() {
  told_origins_ = origins_;
  std::vector<HelloToSend> hellos;
  for (Link& link : links_)
    if (link.stream) hellos.push_back(hello_to(link));
  return hellos;
}

void WorkerShell::introduce(const Setup& setup, std::vector<Buffer> weights, KeptTables earlier) {
  tables_ = std::make_unique<WorkerTables>(setup, options_.worker, std::move(weights),
                                           [this](Request request) { send(std::move(request)); });
  tables_->begin_with(std::move(earlier));
  std::vector<HelloToSend> hellos;
  {
    const base::Lock lock(mutex_);
    setup_ = setup.bytes();
    first_step_ = setup.first_step;
    hellos = hellos_to_all();
  }
  for (HelloToSend& hello : hellos) hello.send();
}

/// Each round of setups has the entry of this worker; the welcomes correct it. There are two rounds or
/// more, because every server must receive the number of all servers' tables.
std::vector<WorkerShell::HelloToSend> WorkerShell::consider_welcomes() {
  if (!std::ranges::all_of(links_, [](const Link& link) { return link.welcome.has_value(); })) return {};
  if (!identify_servers()) return {};
  Entry corrected = entry_;
  for (const Link& link : links_) corrected.correct_by(*link.welcome);
  is_admitted_ = told_origins_ == origins_ && may_begin(entry_, corrected, first_step_);
  entry_ = corrected;
  return is_admitted_ ? std::vector<HelloToSend>() : hellos_to_all();
}

/// Fails if a server has lost its tables, or was restored from a snapshot, while others went on. Law: a server has a
/// worker's update only after it has received from that worker the number of all servers' tables.
bool WorkerShell::identify_servers() {
  std::uint64_t key = 0;
  for (const Link& link : links_) key = base::mixed(key ^ link.welcome->origin);
  origins_ = static_cast<std::uint32_t>(key >> 32) | 1;
  const bool belong_together = std::ranges::all_of(links_, [&](const Link& link) SYNCOPATE_REQUIRES(mutex_) {
    const bool is_known = link.welcome->origins != 0;
    return (!is_known || link.welcome->origins == origins_) &&
           link.welcome->origin_step == links_[0].welcome->origin_step;
  });
  if (belong_together || failure_) return belong_together;
  std::string states;
  for (std::size_t server = 0; server < links_.size(); ++server) {
    const Welcome& welcome = *links_[server].welcome;
    states += fmt::format("{}{} is at step {} of a start from step {}", server == 0 ? "" : ", ", where(server),
                          std::max(welcome.least, welcome.origin_step), welcome.origin_step);
  }
  failure_ = error_of(
      ErrorKind::mismatch,
      fmt::format("the servers hold different states of the job, because they were not all restarted together: {}; "
                  "restart all servers, then the workers: they resume from the newest snapshot that all servers have",
                  states));
  return false;
}

bool WorkerShell::is_connected() const {
  const base::Lock lock(mutex_);
  return std::ranges::all_of(links_, [](const Link& link) { return link.stream != nullptr; });
}

bool WorkerShell::is_admitted() const {
  const base::Lock lock(mutex_);
  return is_admitted_;
}

/// No stream is renewed meanwhile: so of these requests to a server, those that are lost are the last ones.
void WorkerShell::begin() {
  const base::Lock renewing(renewing_);
  Entry entry;
  bool has_first_weights = false;
  {
    const base::Lock lock(mutex_);
    has_begun_ = true;
    entry = entry_;
    has_first_weights = options_.worker == 0 && entry.step == first_step_;
  }
  if (has_first_weights) tables_->offer();
  tables_->begin(entry);
}

void WorkerShell::send(Request request) {
  std::shared_ptr<streams::Stream> stream;
  {
    const base::Lock lock(mutex_);
    const Link& link = links_[request.server];
    if (link.phase != Link::Phase::open) return;
    stream = link.stream;
    statistics_.pushed_bytes += body_bytes(request.message);
  }
  server::send(*stream, request.priority, request.message);
}

/// A server that is being reached again gets the message once it has answered.
void WorkerShell::leave() {
  std::vector<std::size_t> open;
  {
    const base::Lock lock(mutex_);
    has_left_ = true;
    for (std::size_t server = 0; server < links_.size(); ++server)
      if (links_[server].phase == Link::Phase::open) open.push_back(server);
  }
  for (const std::size_t server : open) finish(server);
}

void WorkerShell::finish(std::size_t server) {
  send({server, ~std::uint64_t{0}, Finish{}});
  std::shared_ptr<streams::Stream> stream;
  {
    const base::Lock lock(mutex_);
    stream = links_[server].stream;
  }
  if (stream) stream->close({});
}

/// Runs on: the thread that runs the streams.
void WorkerShell::receive(std::size_t server, Payload bytes) {
  const ServerMessage message = server_message_of(std::move(bytes));
  if (const auto* const refusal = std::get_if<Refuse>(&message))
    return fail(error_of(refusal->kind, fmt::format("{}: {}", where(server), text_of(refusal->reason))));
  const auto* const welcomed = std::get_if<Welcome>(&message);
  {
    const base::Lock lock(mutex_);
    const Link& link = links_[server];
    if (welcomed == nullptr && link.phase != Link::Phase::open)
      return;  // meant for the worker's previous process; the server repeats it after the welcome
    if (welcomed != nullptr && link.phase == Link::Phase::reached) throw Corrupt("a Welcome before the Hello");
    statistics_.pulled_bytes += body_bytes(message);
  }
  tables_->receive(server, message);  // a welcome too before it counts: the worker that waits for it has its contents
  if (welcomed != nullptr) welcome(server, *welcomed);
  const base::Lock lock(mutex_);
  ++arrivals_;
}

void WorkerShell::welcome(std::size_t server, const Welcome& welcome) {
  const base::Lock renewing(renewing_);
  bool has_begun = false, has_left = false;
  std::vector<HelloToSend> hellos;
  {
    const base::Lock lock(mutex_);
    Link& link = links_[server];
    link.phase = Link::Phase::open;
    link.welcome = welcome;
    newest_ = std::max(newest_, welcome.least);
    has_begun = has_begun_;
    has_left = has_left_;
    if (!has_begun) hellos = consider_welcomes();
  }
  for (HelloToSend& hello : hellos) hello.send();
  if (has_begun) tables_->repeat(server);
  if (has_left) finish(server);
}

/// Runs on: the thread that runs the streams. Another stream may recover from the loss.
void WorkerShell::lose(std::size_t server, const streams::Ending& ending) {
  if (ending.failure && *ending.failure != ErrorKind::peer_lost)
    fail(error_of(*ending.failure, fmt::format("{}: {}", where(server), ending.reason)));
  std::shared_ptr<streams::Stream> ended;  // destroyed without the lock
  {
    const base::Lock lock(mutex_);
    Link& link = links_[server];
    ended = std::exchange(link.stream, nullptr);
    link.phase = Link::Phase::away;
    link.lost = clock_->now();
    link.welcome.reset();
    is_admitted_ = false;
    if (!has_left_ && !failure_)
      options_.log.write(LogLevel::warning, fmt::format("worker {}: {} is out of reach: {}", options_.worker,
                                                        where(server), ending.reason));
  }
  ask_();
}

void WorkerShell::fail(std::exception_ptr failure) {
  const base::Lock lock(mutex_);
  if (!failure_ && !has_left_) failure_ = std::move(failure);
}

std::uint64_t WorkerShell::arrivals() const {
  const base::Lock lock(mutex_);
  return arrivals_;
}

bool WorkerShell::is_whole() const {
  const base::Lock lock(mutex_);
  return !failure_;
}

void WorkerShell::require_whole() const {
  const base::Lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

std::string WorkerShell::out_of_reach() const {
  const base::Lock lock(mutex_);
  std::string servers;
  for (std::size_t server = 0; server < links_.size(); ++server)
    if (!links_[server].stream) servers += fmt::format("{}{}", servers.empty() ? "" : ", ", where(server));
  return servers;
}

Clock WorkerShell::newest() const {
  const base::Lock lock(mutex_);
  return newest_;
}

WorkerStatistics WorkerShell::statistics() const {
  const base::Lock lock(mutex_);
  return statistics_;
}

}  // namespace syncopate::server
