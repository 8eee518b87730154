// Delay: a transport that adds a startup time to each message, to emulate a more distant network.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "transport/transport.hpp"

namespace syncopate::transport {

/// Hands every frame to `inner` the delay after its post. The sender delays, because a receiver that posts late would
/// count the delay from that time. Only that frame is delayed: other frames to the same peer pass through their own
/// delay at the same time, so latency grows and bandwidth does not shrink. Frames keep their order.
class DelayTransport final : public Transport, private Lending {
 public:
  DelayTransport(std::unique_ptr<Transport> inner, base::Duration delay);

  [[nodiscard]] FrameLengths frame_lengths(int peer) const noexcept override { return inner_->frame_lengths(peer); }
  [[nodiscard]] Lending* lending() noexcept override { return lender_ == nullptr ? nullptr : this; }
  void send(const Frame& frame) override;
  void receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) override;
  void release(std::uint64_t token) override;
  [[nodiscard]] std::span<const Event> poll(base::Time deadline, Patience patience) override;
  void wake() noexcept override;
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override;

 private:
  struct Held {
    base::Time due;
    Frame frame;
    bool is_loan = false;
  };

  [[nodiscard]] std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override { return lender_->allocate(bytes); }
  [[nodiscard]] bool reaches(base::ConstBytes vector) const noexcept override { return lender_->reaches(vector); }
  void lend(const Frame& frame) override;
  // A reply is delayed as any frame. It cannot lie in the lent memory meanwhile: the memory would be held for the
  // delay, its owner has only a limited amount, and bandwidth would shrink. Arrivals therefore have no memory for a
  // reply: each is given back at once, and the reply is sent as an ordinary frame.
  [[nodiscard]] ReplyMemory reply_memory(std::uint64_t /*arrival*/, int /*peer*/) override { return {}; }
  void reply(std::uint64_t arrival, const Frame& frame) override;
  void send_due(base::Time now);

  std::unique_ptr<Transport> inner_;
  Lending* const lender_;  ///< of `inner_`; null if it has none
  const base::Duration delay_;
  std::atomic<bool> woken_{false};
  std::deque<Held> held_;  ///< in the order of their posts, which is the order of their times
};

/// `inner` itself if the delay is zero.
[[nodiscard]] std::unique_ptr<Transport> delayed(std::unique_ptr<Transport> inner, base::Duration delay);

}  // namespace syncopate::transport
