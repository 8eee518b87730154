// Acceptor: owns the listening sockets, and hands connections to gRPC after their first byte.
#include "server/rpc/socket/acceptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::server::rpc {

namespace {

constexpr std::uint64_t kWake = ~std::uint64_t{0};
constexpr std::size_t kMostWaiting = 256, kMostInside = 64;
constexpr int kTurnMs = 100, kMostAtOnce = 64;

base::Time now() { return std::chrono::steady_clock::now(); }

/// An eighth of the process's descriptors. A guest inside takes two.
std::size_t affordable(std::size_t most) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::clamp<std::size_t>(static_cast<std::size_t>(limit.rlim_cur) / 8, 1, most);
}

}  // namespace

Acceptor::Acceptor(const std::vector<Address>& addresses, std::string name, base::Duration patience, Log log)
    : name_(std::move(name)),
      patience_(patience),
      log_(std::move(log)),
      most_waiting_(affordable(kMostWaiting)),
      most_inside_(affordable(kMostInside)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      next_key_(addresses.size()) {
  if (!epoll_ || !wake_) throw SystemFailure(fmt::format("cannot accept connections: {}", std::strerror(errno)));
  watch(wake_.number(), kWake, EPOLLIN);
  for (const Address& address : addresses) {
    listeners_.push_back(listen_at(address));
    const std::string& text = address.text;
    texts_.push_back(
        address.is_named ? text : fmt::format("{}:{}", text.substr(0, text.rfind(':')), port_of(listeners_.back())));
  }
}

Acceptor::~Acceptor() {
  thread_.request_stop();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.number(), &one, sizeof one);
}

void Acceptor::open(Enter enter) {
  enter_ = std::move(enter);
  for (std::size_t i = 0; i < listeners_.size(); ++i) watch(listeners_[i].number(), i, EPOLLIN);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Acceptor::admit(const std::string& peer) {
  const std::string name = decoded_peer(peer);
  const base::Lock lock(mutex_);
  const auto guest = std::ranges::find_if(
      guests_, [&](const auto& entry) { return entry.second.is_inside && entry.second.peer == name; });
  if (guest == guests_.end()) return;
  forget(guest->second.socket.number());
  guests_.erase(guest);
  --inside_;
}

/// Runs on: `thread_`.
void Acceptor::run(const std::stop_token& stop) {
  std::array<epoll_event, kMostAtOnce> events{};
  while (!stop.stop_requested()) {
    bool is_idle = false;
    {
      const base::Lock lock(mutex_);
      is_idle = guests_.empty() && resting_until_ == base::kNever;
    }
    const int count = ::epoll_wait(epoll_.number(), events.data(), kMostAtOnce, is_idle ? -1 : kTurnMs);
    for (int i = 0; i < count && !stop.stop_requested(); ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      if (key < listeners_.size()) accept_all(key);
      if (key >= listeners_.size() && key != kWake) on_ready(key);
    }
    expire();
  }
}

void Acceptor::accept_all(std::size_t address) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Socket socket = accept_from(listeners_[address]);
    if (socket) {
      greet(address, std::move(socket));
      continue;
    }
    const int error = errno;
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
    const base::Lock lock(mutex_);
    say(fmt::format("cannot accept connections for now: {}", std::strerror(error)));
    if (!drop_oldest([](const Guest&) { return true; })) return rest();
  }
}

void Acceptor::greet(std::size_t address, Socket socket) {
  std::string peer = peer_name(socket);
  if (peer.empty() && !is_of_this_user(socket))
    return log_.write(LogLevel::info, fmt::format("{}: no connection from a process of another user", name_));
  const base::Lock lock(mutex_);
  if (waiting_ >= most_waiting_) {
    say(fmt::format("{} connections have sent nothing: for each new one the oldest is closed", waiting_));
    drop_oldest([](const Guest& guest) { return !guest.is_inside; });
  }
  const std::uint64_t key = next_key_++;
  watch(socket.number(), key, EPOLLIN);
  guests_.emplace(key, Guest{std::move(socket), address, std::move(peer), now() + patience_});
  ++waiting_;
}

void Acceptor::on_ready(std::uint64_t key) {
  std::size_t address = 0;
  int socket = -1;
  {
    const base::Lock lock(mutex_);
    const auto guest = guests_.find(key);
    if (guest == guests_.end()) return;
    address = guest->second.address;
    socket = take_in(key);
  }
  if (socket >= 0) enter_(address, socket);  // without the lock: gRPC may call `admit` from here
}

int Acceptor::take_in(std::uint64_t key) {
  const auto found = guests_.find(key);
  Guest& guest = found->second;
  std::byte first{};
  const ssize_t got = guest.is_inside ? 0 : ::recv(guest.socket.number(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
  if (got <= 0) {  // it has left
    drop(found);
    return -1;
  }
  if (inside_ >= most_inside_) {
    say(fmt::format("{} connections have not proved the job's secret: for each new one the oldest is closed", inside_));
    drop_oldest([](const Guest& other) { return other.is_inside; });
  }
  forget(guest.socket.number());
  --waiting_;
  Socket connection = std::move(guest.socket);
  guest.socket = Socket(guest.peer.empty() ? -1 : ::fcntl(connection.number(), F_DUPFD_CLOEXEC, 0));
  const bool is_out = !guest.peer.empty() && !guest.socket;  // of descriptors
  if (!guest.socket) {
    guests_.erase(found);
    return is_out ? -1 : connection.release();
  }
  guest.is_inside = true;
  ++inside_;
  watch(guest.socket.number(), key, 0);  // its end is reported in any case
  return connection.release();
}

template <class Is>
bool Acceptor::drop_oldest(Is is) {
  const auto oldest = std::ranges::find_if(guests_, [&](const auto& entry) { return is(entry.second); });
  if (oldest == guests_.end()) return false;
  drop(oldest);
  return true;
}

void Acceptor::drop(Guests::iterator guest) {
  const int socket = guest->second.socket.number();
  forget(socket);
  if (guest->second.is_inside) ::shutdown(socket, SHUT_RDWR);  // gRPC sees its end, and closes its descriptor
  --(guest->second.is_inside ? inside_ : waiting_);
  guests_.erase(guest);
}

void Acceptor::expire() {
  const base::Lock lock(mutex_);
  const base::Time at = now();
  while (!guests_.empty() && guests_.begin()->second.deadline <= at) drop(guests_.begin());
  if (resting_until_ == base::kNever || at < resting_until_) return;
  resting_until_ = base::kNever;
  for (std::size_t i = 0; i < listeners_.size(); ++i) watch(listeners_[i].number(), i, EPOLLIN);
}

void Acceptor::rest() {
  resting_until_ = now() + std::chrono::milliseconds(kTurnMs);
  for (const Socket& listener : listeners_) forget(listener.number());
}

void Acceptor::watch(int socket, std::uint64_t key, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket, &event);
}

void Acceptor::forget(int socket) const { ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, socket, nullptr); }

/// Logs once in `patience`: strangers must not fill the log.
void Acceptor::say(const std::string& what) {
  if (said_at_ != base::Time{} && now() < said_at_ + patience_) return;
  said_at_ = now();
  log_.write(LogLevel::warning, fmt::format("{}: {}", name_, what));
}

}  // namespace syncopate::server::rpc
