// The kernel's watcher: one epoll set, which other threads wake by watching a descriptor that is always readable.
#include "transport/socket/kernel_watcher.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <vector>

#include "syncopate/error.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::socket {

namespace {

constexpr std::uint64_t kWake = ~std::uint64_t{0};
constexpr std::size_t kBatch = 64;

epoll_event event_of(std::uint64_t key, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return event;
}

[[noreturn]] void fail(const char* what) { throw SystemFailure(fmt::format("cannot {}: {}", what, reason_of(errno))); }

/// One for all watchers of the process, so that a group needs none of its own. It is never read, written or closed, and
/// so a forked child may use it too.
int always_readable() {
  static const int descriptor = [] {
    const int made = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made < 0) fail("create an eventfd");
    return made;
  }();
  return descriptor;
}

base::Duration left_until(base::Time deadline) {
  return std::max(base::Duration{0}, deadline - std::chrono::steady_clock::now());
}

/// Waits with nanosecond resolution: half a millisecond must not become a whole one.
int wait_finely(int epoll, std::span<epoll_event> into, base::Time deadline) {
  timespec left{};
  if (deadline != base::kNever) {
    const base::Duration all = left_until(deadline);
    const auto whole = std::chrono::floor<std::chrono::seconds>(all);
    left = {.tv_sec = whole.count(), .tv_nsec = (all - whole).count()};
  }
  return ::epoll_pwait2(epoll, into.data(), static_cast<int>(into.size()), deadline == base::kNever ? nullptr : &left,
                        nullptr);
}

int wait_coarsely(int epoll, std::span<epoll_event> into, base::Time deadline) {
  int left_ms = -1;
  if (deadline != base::kNever) {
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left_until(deadline)).count();
    left_ms = static_cast<int>(std::min<std::int64_t>(rounded, std::numeric_limits<int>::max()));
  }
  return ::epoll_wait(epoll, into.data(), static_cast<int>(into.size()), left_ms);
}

class KernelWatcher final : public Watcher {
 public:
  KernelWatcher() : waking_(always_readable()), epoll_(::epoll_create1(EPOLL_CLOEXEC)), raw_(kBatch) {
    if (!epoll_) fail("create an epoll set");
    add(waking_, kWake, 0);
  }
  void add(int descriptor, std::uint64_t key, std::uint32_t events) override {
    epoll_event event = event_of(key, events);
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event) != 0) fail("watch a socket");
  }
  void change(int descriptor, std::uint64_t key, std::uint32_t events) noexcept override {
    epoll_event event = event_of(key, events);
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, descriptor, &event);
  }
  void remove(int descriptor) noexcept override { ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr); }
  std::span<const Ready> wait(base::Time deadline) override;
  /// The kernel looks at a descriptor when it is to be watched, and finds this one readable: one event.
  void wake() noexcept override { change(waking_, kWake, EPOLLIN | EPOLLONESHOT); }

 private:
  const int waking_;
  Descriptor epoll_;
  bool is_coarse_ = false;  ///< the kernel waits only by milliseconds
  std::vector<epoll_event> raw_;
  std::vector<Ready> ready_;
};

std::span<const Ready> KernelWatcher::wait(base::Time deadline) {
  ready_.clear();
  int count = is_coarse_ ? -1 : wait_finely(epoll_.number(), raw_, deadline);
  // Before Linux 5.11 the call is missing; a container's filter that does not list the call may forbid it instead.
  if (count < 0 && (errno == ENOSYS || errno == EPERM)) is_coarse_ = true;
  if (is_coarse_) count = wait_coarsely(epoll_.number(), raw_, deadline);
  if (count < 0 && errno != EINTR) fail("wait for sockets");
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = raw_[static_cast<std::size_t>(i)];
    if (event.data.u64 != kWake) ready_.push_back({event.data.u64, event.events});
  }
  return ready_;
}

}  // namespace

std::unique_ptr<Watcher> kernel_watcher() { return std::make_unique<KernelWatcher>(); }

}  // namespace syncopate::transport::socket
