// Acceptor: accepts and makes connections, with all handshakes in progress; strangers are cut off and logged.
#include "transport/connect/acceptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "syncopate/error.hpp"
#include "transport/connect/peer_info.hpp"

namespace syncopate::transport::connect {

namespace {
constexpr auto kRest = std::chrono::milliseconds(100);
constexpr auto kPauseOfCall = std::chrono::milliseconds(20);
}  // namespace

Acceptor::Acceptor(socket::Poller& poller, AcceptorOptions options) : poller_(poller), options_(std::move(options)) {
  // A quarter of the process's descriptors; the rest is the program's.
  const std::size_t affordable = std::max<std::size_t>(1, poller_.system().most_descriptors() / 4);
  options_.most_waiting = std::min(options_.most_waiting, affordable);
}

void Acceptor::open(socket::Descriptor listener) {
  poller_.add(listener, kFirstKey + listeners_.size(), EPOLLIN);
  listeners_.push_back(std::move(listener));
}

void Acceptor::watch_listeners(std::uint32_t events) {
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (listeners_[i]) poller_.change(listeners_[i], kFirstKey + i, events);
}

void Acceptor::close(std::size_t listener) {
  if (listener >= listeners_.size() || !listeners_[listener]) return;
  poller_.remove(listeners_[listener]);
  listeners_[listener] = {};
}

void Acceptor::call(const socket::Address& to, const socket::Address& from, const Hello& mine, base::Time deadline) {
  attempt({to, from, mine, deadline, {}});
}

void Acceptor::attempt(Call call) {
  auto cause = Handshake::Cause::no_socket;
  try {
    socket::Descriptor socket = socket::open_socket(call.to, poller_.system());
    cause = Handshake::Cause::unreachable;
    socket::Channel channel(socket::start_connection(std::move(socket), call.to, call.from));
    Hello mine = call.mine;
    mine.tls = encrypts(call.to);
    begin({Handshake::call(std::move(channel), mine, options_.secret, options_.meeting), call, call.to.text(),
           call.deadline, 0});
  } catch (const SystemFailure& failure) {
    refusals_.push_back({call.mine, cause, failure.what()});
  }
}

void Acceptor::on_ready(const socket::Ready& ready) {
  if (const std::uint64_t index = ready.key - kFirstKey; index < kMostListeners) {
    if (index < listeners_.size() && listeners_[index]) accept_all(listeners_[index]);
    return;
  }
  const auto found = pending_.find(ready.key);
  if (found != pending_.end()) advance(found);
}

void Acceptor::accept_all(const socket::Descriptor& listener) {
  while (socket::Descriptor socket = socket::accept_from(listener)) {
    socket::tune(socket);
    const socket::Address caller = socket::remote_address(socket);
    if (accepted_ >= options_.most_waiting) make_room();
    const Hello mine{
        .version = {}, .group = options_.group, .from = options_.rank, .tls = encrypts(socket::local_address(socket))};
    begin({Handshake::answer(socket::Channel(std::move(socket)), mine, options_.secret, options_.meeting), std::nullopt,
           caller.text(), now() + options_.stranger_patience, 0});
  }
  const int error = errno;
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return exhaustion_.clear();
  const bool is_known = !exhaustion_.empty(), goes_on = is_known && now() < last_exhausted_ + 2 * kRest;
  exhaustion_ = fmt::format("cannot accept connections: {}", socket::reason_of(error));
  last_exhausted_ = now();
  if (!goes_on) exhausted_since_ = last_exhausted_;
  if (!is_known) options_.log.write(LogLevel::warning, exhaustion_);
  watch_listeners(0);
  paused_until_ = now() + kRest;
}

/// Keys grow with time: the first accepted handshake is the oldest.
void Acceptor::make_room() {
  const auto oldest = std::ranges::find_if(pending_, [](const auto& entry) { return !entry.second.call; });
  const Pending gone = take(oldest);
  refuse(gone, Handshake::Cause::cut_off, fmt::format("{} newer handshakes are in progress", accepted_));
}

Acceptor::Pending Acceptor::take(PendingMap::iterator entry) {
  Pending pending = std::move(pending_.extract(entry).mapped());
  if (!pending.call) --accepted_;
  poller_.remove(pending.handshake.channel().socket());
  return pending;
}

void Acceptor::begin(Pending pending) {
  const std::uint64_t key = next_key_++;
  if (!pending.call) ++accepted_;
  const auto [entry, fresh] = pending_.emplace(key, std::move(pending));
  const socket::Descriptor& socket = entry->second.handshake.channel().socket();
  poller_.add(socket, key, 0);
  if (socket::local_address(socket).family() == AF_UNIX && !socket::same_user(socket)) return finish(entry);
  advance(entry);
}

void Acceptor::advance(PendingMap::iterator entry) {
  Pending& pending = entry->second;
  const auto state = pending.handshake.advance();
  if (state == Handshake::State::done || state == Handshake::State::refused) return finish(entry);
  const std::uint32_t wanted = state == Handshake::State::reading ? EPOLLIN : EPOLLOUT;
  if (wanted == pending.watched) return;
  pending.watched = wanted;
  poller_.change(pending.handshake.channel().socket(), entry->first, wanted);
}

void Acceptor::finish(PendingMap::iterator entry) {
  Pending pending = take(entry);
  Handshake& handshake = pending.handshake;
  if (handshake.state() == Handshake::State::done) {
    connections_.push_back({handshake.take(), handshake.peer(), pending.call.has_value()});
  } else if (handshake.state() == Handshake::State::refused) {
    refuse(pending, handshake.cause(), handshake.reason());
  } else {
    refuse(pending, Handshake::Cause::stranger, "it belongs to another user");
  }
}

void Acceptor::refuse(const Pending& pending, Handshake::Cause cause, const std::string& reason) {
  options_.log.write(LogLevel::info,
                     fmt::format("no connection {} {}: {}", pending.call ? "to" : "from", pending.address, reason));
  if (!pending.call) {
    const Hello& theirs = pending.handshake.peer();
    if (cause == Handshake::Cause::tls) refusals_.push_back({pending.handshake.mine(), cause, reason, theirs.from});
    return;
  }
  Call call = *pending.call;
  call.next = now() + kPauseOfCall;
  if (cause == Handshake::Cause::cut_off && call.next < call.deadline) return repeats_.push_back(std::move(call));
  refusals_.push_back({call.mine, cause, fmt::format("{}: {}", pending.address, reason)});
}

/// Traffic of a unix socket does not leave the host, and may pass memory, which TLS cannot carry.
bool Acceptor::encrypts(const socket::Address& answerer) const noexcept {
  return answerer.family() != AF_UNIX && connect::encrypts(options_.tls, answerer.is_public());
}

void Acceptor::expire(base::Time at) {
  if (at >= paused_until_) {
    paused_until_ = base::kNever;
    watch_listeners(EPOLLIN);
  }
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    const auto current = entry++;
    if (current->second.deadline > at) continue;
    const Pending silent = take(current);
    refuse(silent, Handshake::Cause::unreachable, "it did not finish its handshake in time");
  }
  const auto due = std::ranges::partition(repeats_, [&](const Call& call) { return call.next > at; });
  std::vector<Call> calls(std::make_move_iterator(due.begin()), std::make_move_iterator(due.end()));
  repeats_.erase(due.begin(), due.end());
  for (Call& call : calls) attempt(std::move(call));
}

std::string Acceptor::exhaustion() const {
  const bool lasts = paused_until_ != base::kNever && last_exhausted_ >= exhausted_since_ + kPatienceWithout;
  return lasts ? exhaustion_ : "";
}

base::Time Acceptor::next_deadline() const noexcept {
  if (!connections_.empty() || !refusals_.empty()) return {};  // a call may end at once
  base::Time next = paused_until_;
  for (const auto& [key, pending] : pending_) next = std::min(next, pending.deadline);
  for (const Call& call : repeats_) next = std::min(next, call.next);
  return next;
}

}  // namespace syncopate::transport::connect
