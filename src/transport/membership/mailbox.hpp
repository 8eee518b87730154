// Mailbox: passes connections, and a wake-up on news, from the control thread to the polling thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "transport/socket/channel.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate::transport::membership {

/// A connection for data or for sharing memory: ready, or failed (then `channel` is empty and `reason` states the
/// cause).
struct LinkNews {
  int peer = -1;
  std::uint32_t stream = 0;
  socket::Channel channel;
  std::string reason;
};

/// Thread-safe: the control thread fills it, the polling thread empties it and owns the poller otherwise.
class Mailbox final {
 public:
  explicit Mailbox(socket::System& system = socket::kernel()) : poller_(system) {}
  void deliver(LinkNews link) {
    links_.with([&](auto& links) { links.push_back(std::move(link)); });
    ring();
  }
  void deliver_memory(LinkNews link) {
    memory_.with([&](auto& links) { links.push_back(std::move(link)); });
    ring();
  }
  /// Announces a change: the polling thread checks links and failures.
  void ring() noexcept {
    if (!rung_.exchange(true, std::memory_order_acq_rel)) poller_.wake();
  }
  /// Whether `ring` was called since the last call; one load if it was not.
  [[nodiscard]] bool take_ring() noexcept {
    return rung_.load(std::memory_order_relaxed) && rung_.exchange(false, std::memory_order_acq_rel);
  }
  [[nodiscard]] std::vector<LinkNews> links() {
    return links_.with([](auto& links) { return std::exchange(links, {}); });
  }
  [[nodiscard]] std::vector<LinkNews> memory() {
    return memory_.with([](auto& links) { return std::exchange(links, {}); });
  }
  [[nodiscard]] bool rung() const noexcept { return rung_.load(std::memory_order_relaxed); }
  [[nodiscard]] socket::Poller& poller() noexcept { return poller_; }

 private:
  std::atomic<bool> rung_{false};
  base::Guarded<std::vector<LinkNews>> links_, memory_;
  socket::Poller poller_;
};

}  // namespace syncopate::transport::membership
