// Poller: waits for many descriptors and for a wake-up from another thread.
#include "transport/socket/poller.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::transport::socket {

namespace {

constexpr std::uint64_t kBell = ~std::uint64_t{0};
constexpr std::size_t kBatch = 64;

epoll_event event_of(std::uint64_t key, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return event;
}

/// Until the deadline; null: for ever. In nanoseconds: a delay of half a millisecond must not become one of one.
const timespec* timeout_until(base::Time deadline, timespec& storage) {
  if (deadline == base::kNever) return nullptr;
  const base::Duration left = std::max(base::Duration{0}, deadline - std::chrono::steady_clock::now());
  const auto whole = std::chrono::floor<std::chrono::seconds>(left);
  storage = {.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
  return &storage;
}

}  // namespace

Poller::Poller()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), raw_(kBatch) {
  if (!epoll_ || !bell_) throw SystemFailure(fmt::format("cannot create an epoll set: {}", std::strerror(errno)));
  // Edge-triggered: every ring of the bell is one event, and nobody needs to read the counter.
  add(bell_, kBell, EPOLLIN | EPOLLET);
}

void Poller::add(const Descriptor& what, std::uint64_t key, std::uint32_t events) {
  epoll_event event = event_of(key, events);
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, what.number(), &event) != 0)
    throw SystemFailure(fmt::format("cannot watch a socket: {}", std::strerror(errno)));
}

void Poller::change(const Descriptor& what, std::uint64_t key, std::uint32_t events) noexcept {
  epoll_event event = event_of(key, events);
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, what.number(), &event);
}

void Poller::remove(const Descriptor& what) noexcept {
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, what.number(), nullptr);
}

std::span<const Ready> Poller::wait(base::Time deadline) {
  ready_.clear();
  timespec storage{};
  const timespec* timeout = timeout_until(deadline, storage);
  const int count = ::epoll_pwait2(epoll_.number(), raw_.data(), static_cast<int>(raw_.size()), timeout, nullptr);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = raw_[static_cast<std::size_t>(i)];
    if (event.data.u64 != kBell) ready_.push_back({event.data.u64, event.events});
  }
  return ready_;
}

void Poller::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell_.number(), &one, sizeof one);
}

}  // namespace syncopate::transport::socket
