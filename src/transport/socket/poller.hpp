// Poller: waits for many descriptors and for a wake-up from another thread.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::socket {

/// All descriptors belong to one system. Used by one thread, except `wake`.
class Poller final {
 public:
  explicit Poller(System& system = kernel()) : system_(system), watcher_(system.watcher()) {}
  void add(const Descriptor& what, std::uint64_t key, std::uint32_t events) {
    watcher_->add(what.number(), key, events);
  }
  void change(const Descriptor& what, std::uint64_t key, std::uint32_t events) noexcept {
    watcher_->change(what.number(), key, events);
  }
  void remove(const Descriptor& what) noexcept { watcher_->remove(what.number()); }
  /// Waits until something is ready, `wake`, or the deadline. Wake-ups are not among the results, which stay valid
  /// until the next call. Throws SystemFailure.
  [[nodiscard]] std::span<const Ready> wait(base::Time deadline) { return watcher_->wait(deadline); }
  void wake() noexcept { watcher_->wake(); }
  [[nodiscard]] System& system() const noexcept { return system_; }

 private:
  System& system_;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace syncopate::transport::socket
