// Acceptor: where connections come in and go out, with all handshakes under way; strangers are cut off and logged.
#include "transport/connect/acceptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::transport::connect {

namespace {
constexpr auto kRest = std::chrono::milliseconds(100);
base::Time now() { return std::chrono::steady_clock::now(); }
}  // namespace

void Acceptor::open(socket::Descriptor listener) {
  poller_.add(listener, kFirstKey + listeners_.size(), EPOLLIN);
  listeners_.push_back(std::move(listener));
}

void Acceptor::watch_listeners(std::uint32_t events) {
  for (std::size_t i = 0; i < listeners_.size(); ++i) poller_.change(listeners_[i], kFirstKey + i, events);
}

void Acceptor::call(const socket::Address& to, const socket::Address& from, const Hello& mine) {
  try {
    begin(Handshake::call(socket::Channel(socket::start_connection(to, from)), mine, options_.secret), true, to.text());
  } catch (const SystemFailure& failure) {
    refusals_.push_back({mine, Handshake::Cause::unreachable, failure.what()});
  }
}

void Acceptor::on_ready(const socket::Ready& ready) {
  if (const std::uint64_t index = ready.key - kFirstKey; index < listeners_.size())
    return accept_all(listeners_[index]);
  const auto found = pending_.find(ready.key);
  if (found != pending_.end()) advance(found);
}

void Acceptor::accept_all(const socket::Descriptor& listener) {
  while (socket::Descriptor socket = socket::accept_from(listener)) {
    socket::tune(socket);
    const socket::Address caller = socket::remote_address(socket);
    if (pending_.size() >= options_.most_waiting) {
      options_.log.write(LogLevel::info,
                         fmt::format("turned {} away: {} handshakes are under way", caller.text(), pending_.size()));
      continue;
    }
    const Hello mine{.version = {}, .group = options_.group, .from = options_.rank};
    begin(Handshake::answer(socket::Channel(std::move(socket)), mine, options_.secret), false, caller.text());
  }
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (!exhausted) return;
  options_.log.write(LogLevel::warning, fmt::format("cannot accept connections for now: {}", std::strerror(errno)));
  watch_listeners(0);
  paused_until_ = now() + kRest;
}

void Acceptor::begin(Handshake handshake, bool called, std::string address) {
  const std::uint64_t key = next_key_++;
  const auto [entry, fresh] =
      pending_.emplace(key, Pending{std::move(handshake), called, std::move(address), now() + options_.patience, 0});
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
  Pending pending = std::move(pending_.extract(entry).mapped());
  Handshake& handshake = pending.handshake;
  poller_.remove(handshake.channel().socket());
  if (handshake.state() == Handshake::State::done) {
    connections_.push_back({handshake.take(), handshake.peer(), pending.called});
  } else if (handshake.state() == Handshake::State::refused) {
    refuse(pending, handshake.cause(), handshake.reason());
  } else {
    refuse(pending, Handshake::Cause::stranger, "it belongs to another user");
  }
}

void Acceptor::refuse(const Pending& pending, Handshake::Cause cause, const std::string& reason) {
  options_.log.write(LogLevel::info,
                     fmt::format("no connection {} {}: {}", pending.called ? "to" : "from", pending.address, reason));
  if (pending.called)
    refusals_.push_back({pending.handshake.mine(), cause, fmt::format("{}: {}", pending.address, reason)});
}

void Acceptor::expire(base::Time at) {
  if (at >= paused_until_) {
    paused_until_ = base::kNever;
    watch_listeners(EPOLLIN);
  }
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    const auto current = entry++;
    if (current->second.deadline > at) continue;
    const Pending silent = std::move(pending_.extract(current).mapped());
    poller_.remove(silent.handshake.channel().socket());
    refuse(silent, Handshake::Cause::unreachable, "it did not finish its handshake in time");
  }
}

base::Time Acceptor::next_deadline() const noexcept {
  base::Time next = paused_until_;
  // Keys grow with time and every handshake has the same patience: the first is the oldest.
  if (!pending_.empty()) next = std::min(next, pending_.begin()->second.deadline);
  return next;
}

}  // namespace syncopate::transport::connect
