// Transport between ranks of one process: a receiver borrows the sender's own memory.
#pragma once

#include <memory>
#include <vector>

#include "transport/inproc/control.hpp"
#include "transport/inproc/hub.hpp"
#include "transport/membership/link_failure.hpp"
#include "transport/traffic.hpp"

namespace syncopate::transport::inproc {

class InprocTransport final : public Transport {
 public:
  InprocTransport(std::shared_ptr<Hub> hub, std::shared_ptr<InprocControl> control, int rank);
  /// The rank leaves the group.
  ~InprocTransport() override;

  void send(const Frame& frame) override;
  void receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) override;
  void release(std::uint64_t token) override;
  [[nodiscard]] std::span<const Event> poll(base::Time deadline, Patience patience) override;
  void wake() noexcept override;
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override;

 private:
  struct Expected {
    FrameHead frame;
    std::uint64_t token = 0;
  };
  struct Misfit {
    int sender = -1;
    membership::LinkFailure link_failure;
  };
  struct Borrowed {
    std::uint64_t token = 0;  ///< this rank's
    std::size_t sender = 0;
    std::uint64_t sender_token = 0;
  };

  [[nodiscard]] Mailbox& mailbox_of(std::size_t rank) { return hub_->mailboxes[rank]; }
  [[nodiscard]] Mailbox& mine() { return mailbox_of(static_cast<std::size_t>(rank_)); }
  void collect();
  void match(std::size_t sender, std::deque<Offer>& offers);
  void wait_for_signal(std::uint64_t seen, base::Time deadline, Patience patience);
  [[nodiscard]] bool awaits(std::size_t peer);
  void report_departed();
  void give_back(const Borrowed& borrowed);
  void withdraw() noexcept;

  std::shared_ptr<Hub> hub_;
  std::shared_ptr<InprocControl> control_;
  const int rank_;
  std::vector<std::deque<Expected>> expected_;  ///< by sender
  std::vector<Borrowed> borrowed_;
  std::vector<Event> events_;
  std::size_t in_flight_ = 0;     ///< own frames whose bytes were not given back yet
  std::optional<Misfit> misfit_;  ///< a frame that does not fit its receive
  membership::LinkFailures link_failures_;
  std::atomic<bool> woken_{false};
  LinkTraffic traffic_;
};

}  // namespace syncopate::transport::inproc
