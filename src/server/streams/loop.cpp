// Loop: handles events of sockets, dials, and time.
#include "server/streams/loop.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/require.hpp"

namespace syncopate::server::streams {

namespace connect = transport::connect;
namespace socket = transport::socket;
using connect::Handshake, connect::Purpose;

namespace {

constexpr base::Duration kLongestPause = std::chrono::milliseconds(100);

Purpose purpose_of(Identity::Role role) {
  switch (role) {
    case Identity::Role::worker:
      return Purpose::worker;
    case Identity::Role::server:
      return Purpose::server;
    case Identity::Role::observer:
      break;
  }
  return Purpose::observer;
}

std::optional<Identity> caller_of(const connect::Hello& hello) {
  if (hello.from < 0) return std::nullopt;
  const auto index = static_cast<std::size_t>(hello.from);
  switch (hello.purpose) {
    case Purpose::worker:
      return Identity{Identity::Role::worker, index};
    case Purpose::server:
      return Identity{Identity::Role::server, index};
    case Purpose::observer:
      return Identity{Identity::Role::observer, index};
    default:
      return std::nullopt;
  }
}

connect::AcceptorOptions acceptor_options(const EndOptions& options, std::uint64_t job) {
  return {.rank = static_cast<int>(options.self.index),
          .group = job,
          .secret = options.secret,
          .tls = options.tls,
          .patience = options.patience,
          .stranger_patience = options.patience,
          .log = options.log};
}

template <class Failure>
std::exception_ptr pointer_to(const std::string& text) {
  return std::make_exception_ptr(Failure(text));
}

}  // namespace

std::uint64_t number_of_job(const std::string& name) noexcept { return XXH3_64bits(name.data(), name.size()); }

Loop::Loop(EndOptions options, Accepted accepted, socket::System& system, std::function<void()> on_work)
    : options_(std::move(options)),
      job_(number_of_job(options_.job)),
      accepted_(std::move(accepted)),
      poller_(system),
      acceptor_(poller_, acceptor_options(options_, job_)),
      on_work_(on_work ? std::move(on_work) : [this] { wake(); }),
      work_(std::make_shared<WorkList>(on_work_)),
      shared_{.silence = options_.silence, .work = work_} {
  base::require(options_.silence >= std::chrono::milliseconds(100), "a silence of {} ms; allowed: 100 ms or more",
                options_.silence / std::chrono::milliseconds(1));
  base::require(options_.tls != TlsChoice::on || !options_.secret.empty(),
                "TLS needs the job's secret, from which its keys are made: name a file with at least 16 random bytes, "
                "the same in every process, in SYNCOPATE_SECRET_FILE");
}

Loop::~Loop() {
  work_->close();
  for (const auto& [key, entry] : connections_) {
    entry.connection->cut();
    entry.connection->close_channel();
  }
}

std::vector<std::string> Loop::listen(const std::vector<std::string>& addresses) {
  base::require(!addresses.empty(), "a parameter server needs an address; allowed: 1 or more");
  std::vector<std::string> bound;
  for (const std::string& text : addresses) {
    const socket::Address address = address_in(text, socket::Address::parse);
    socket::require_guarded(address, !options_.secret.empty());
    socket::Descriptor listener = socket::listen_on(address, poller_.system());
    bound.push_back(socket::local_address(listener).text());
    acceptor_.open(std::move(listener));
  }
  return bound;
}

void Loop::dial(Dial dial) {
  socket::require_guarded(dial.to, !options_.secret.empty());
  ordered_.with([&](std::vector<Dial>& ordered) { ordered.push_back(std::move(dial)); });
  on_work_();
}

bool Loop::has_work() const {
  return !work_->is_empty() || ordered_.with([](const std::vector<Dial>& ordered) { return !ordered.empty(); });
}

std::size_t Loop::feed(std::span<const socket::Ready> ready) {
  std::size_t bytes = 0;
  for (const socket::Ready& event : ready) {
    if (event.key >= connect::Acceptor::kFirstKey) {
      acceptor_.on_ready(event);
    } else if (const auto found = connections_.find(event.key); found != connections_.end()) {
      bytes += found->second.connection->advance();
    }
  }
  take_dials();
  take_results();
  expire();
  for (const auto& connection : work_->take()) bytes += connection->advance();
  reap();
  return bytes;
}

base::Time Loop::next_deadline() const {
  base::Time next = acceptor_.next_deadline();
  for (const auto& [key, entry] : connections_) next = std::min(next, entry.connection->next_tick());
  for (const auto& [number, dialling] : dials_) next = std::min({next, dialling.next, dialling.deadline});
  return next;
}

void Loop::take_dials() {
  for (Dial& dial : ordered_.with([](auto& ordered) { return std::exchange(ordered, {}); })) {
    const std::uint32_t number = next_dial_++;
    const base::Time deadline = now() + dial.patience;
    attempt(number, dials_.emplace(number, Dialling{.dial = std::move(dial), .deadline = deadline}).first->second);
  }
}

void Loop::attempt(std::uint32_t number, Dialling& dialling) {
  dialling.next = base::kNever;
  acceptor_.call(dialling.dial.to, {},
                 {.version = {},
                  .purpose = purpose_of(options_.self.role),
                  .group = job_,
                  .from = static_cast<std::int32_t>(options_.self.index),
                  .to = dialling.dial.server,
                  .stream = number},
                 dialling.deadline);
}

void Loop::take_results() {
  for (connect::Connection& connection : acceptor_.connections()) admit(std::move(connection));
  for (const connect::Refusal& refusal : acceptor_.refusals()) consider(refusal);
}

/// An answerer's hello repeats the number of the call.
void Loop::admit(connect::Connection connection) {
  if (is_abandoned_) return;
  if (!connection.called) {
    const auto caller = caller_of(connection.hello);
    if (!caller) return;  // a rank of a group; its connection ends
    const socket::Address from = socket::remote_address(connection.channel.socket());
    open(std::move(connection), *caller, from.family() == AF_UNIX ? "this host" : from.text(), true, accepted_);
    return;
  }
  auto found = dials_.extract(connection.hello.stream);
  if (!found) return;  // it was given up
  const Dial dial = std::move(found.mapped().dial);
  const Identity server{Identity::Role::server, static_cast<std::size_t>(std::max(0, connection.hello.from))};
  try {
    open(std::move(connection), server, dial.address, false, dial.events.reached);
  } catch (const SystemFailure&) {  // the system watches no more sockets
    dial.events.failed(std::current_exception());
  }
}

void Loop::open(connect::Connection connection, Identity peer, const std::string& address, bool is_offered,
                const Connection::Taker& taker) {
  const std::uint64_t key = next_key_++;
  const auto opened = std::make_shared<Connection>(std::move(connection.channel), peer, address, shared_);
  poller_.add(opened->socket(), key, EPOLLIN);
  connections_.emplace(key, Entry{opened});
  opened->open(is_offered, taker);
}

void Loop::consider(const connect::Refusal& refusal) {
  const auto found = refusal.caller < 0 ? dials_.find(refusal.mine.stream) : dials_.end();
  if (found == dials_.end()) return;
  Dialling& dialling = found->second;
  const auto fail = [&](std::exception_ptr why) {
    const auto failed = std::move(dials_.extract(found).mapped().dial.events.failed);
    failed(std::move(why));
  };
  const std::string& address = dialling.dial.address;
  switch (refusal.cause) {
    case Handshake::Cause::unauthorized:
      return fail(pointer_to<Unauthorized>(
          fmt::format("the parameter server at {} and this process have not the same secret; give both ends the same "
                      "SYNCOPATE_SECRET_FILE",
                      address)));
    case Handshake::Cause::version:
    case Handshake::Cause::tls:
      return fail(pointer_to<Mismatch>(fmt::format("the parameter server at {}", refusal.reason)));
    case Handshake::Cause::stranger:
      return fail(pointer_to<Mismatch>(
          fmt::format("the program at {} is not a parameter server of this job: {}", address, refusal.reason)));
    default:
      dialling.last = refusal.reason;
      dialling.next = now() + dialling.pause;
      dialling.pause = std::min(2 * dialling.pause, kLongestPause);
  }
}

void Loop::expire() {
  const base::Time time = now();
  acceptor_.expire(time);
  for (auto entry = dials_.begin(); entry != dials_.end();) {
    const auto current = entry++;
    if (current->second.deadline <= time) {
      const Dialling gone = std::move(dials_.extract(current).mapped());
      gone.dial.events.failed(pointer_to<PeerLost>(fmt::format(
          "no parameter server answers at {} within {} ms{}; it must run there and be reachable from this host",
          gone.dial.address, gone.dial.patience / std::chrono::milliseconds(1),
          gone.last.empty() ? "" : fmt::format(" (last: {})", gone.last))));
    } else if (current->second.next <= time) {
      attempt(current->first, current->second);
    }
  }
  for (const auto& [key, entry] : connections_) entry.connection->tick(time);
}

void Loop::reap() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto entry = at++;
    Connection& connection = *entry->second.connection;
    if (connection.is_over()) {
      poller_.remove(connection.socket());
      connection.close_channel();
      connections_.erase(entry);
    } else if (const std::uint32_t wanted = connection.wanted(); wanted != entry->second.watched) {
      entry->second.watched = wanted;
      poller_.change(connection.socket(), entry->first, wanted);
    }
  }
}

void Loop::abandon() {
  is_abandoned_ = true;
  take_dials();
  for (auto& [number, dialling] : std::exchange(dials_, {}))
    dialling.dial.events.failed(pointer_to<PeerLost>("this end of the streams was destroyed"));
  for (const auto& [key, entry] : connections_)
    entry.connection->abandon(
        {ErrorKind::peer_lost,
         fmt::format("the stream with {} ended with this end's other streams", entry.connection->other_end())});
  reap();
}

}  // namespace syncopate::server::streams
