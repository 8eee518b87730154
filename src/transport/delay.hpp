// Delay: a transport whose messages take a startup time more: it emulates a network that is farther away.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "transport/lending.hpp"

namespace syncopate::transport {

/// Every frame is handed to `inner` so long after its post. It is the sender that holds it, because a receiver that
/// comes late would count the delay from then; and only that frame is late: others of the same peer pass through their
/// own delay at the same time, so a link is slower to answer and no narrower. Frames keep their order.
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
  // A reply is late as any frame, and so it cannot lie in the lent memory: that would have to be kept for the delay,
  // and its owner has only so much of it; the link would be narrower, not only slower to answer. So no arrival has
  // memory for a reply: it is given back at once, and the reply is sent as others are.
  [[nodiscard]] ReplyMemory reply_memory(std::uint64_t /*arrival*/, int /*peer*/) override { return {}; }
  void reply(std::uint64_t arrival, const Frame& frame) override;
  void send_due(base::Time now);

  std::unique_ptr<Transport> inner_;
  Lending* const lender_;  ///< of `inner_`; null if that has none
  const base::Duration delay_;
  std::atomic<bool> woken_{false};
  std::deque<Held> held_;  ///< in the order of their posts, which is that of their times
};

/// `inner` itself where there is no delay.
[[nodiscard]] std::unique_ptr<Transport> delayed(std::unique_ptr<Transport> inner, base::Duration delay);

}  // namespace syncopate::transport
