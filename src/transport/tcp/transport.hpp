// TCP transport: frames over one or several connections per pair of ranks, made on first use.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transport/backoff.hpp"
#include "transport/membership/control_protocol.hpp"
#include "transport/membership/mailbox.hpp"
#include "transport/tcp/stream.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::tcp {

struct TransportOptions {
  int rank = 0;
  int size = 1;
  std::uint32_t streams = 1;
  FrameRules rules;
};

/// Law of the streams: the k-th frame from one rank to another travels on stream k mod `streams`. The higher rank of a
/// pair connects, at its first post (send or receive); the lower waits for it.
class TcpTransport final : public Transport {
 public:
  TcpTransport(const TransportOptions& options, std::shared_ptr<membership::ControlProtocol> control,
               std::shared_ptr<membership::Mailbox> mailbox);

  void send(const transport::Frame& frame) override;
  void receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) override;
  void release(std::uint64_t /*token*/) override {}  // arrivals lie in the posted spans: nothing is borrowed
  [[nodiscard]] std::span<const Event> poll(base::Time deadline, Patience patience) override;
  void wake() noexcept override;
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override;

  /// For a transport that adds links of another kind. A descriptor added to the mailbox's poller with this key ends a
  /// poll, and so does a delivery to the mailbox.
  static constexpr std::uint64_t kForeignKey = 0;
  /// Whether unfinished posts wait.
  [[nodiscard]] bool busy() const noexcept { return !active_.empty() || !finished_.empty(); }

 private:
  struct Peer {
    std::vector<std::unique_ptr<Stream>> streams;  ///< empty until the first post or connection
    std::uint64_t frames_out = 0;
    std::uint64_t frames_in = 0;
  };

  [[nodiscard]] base::Time now() const noexcept { return mailbox_->poller().system().now(); }
  [[nodiscard]] Peer& peer_at(int rank);
  void open(int rank, Peer& peer);
  void touch(Stream& stream);
  void collect_news();
  void attach(membership::LinkNews news);
  void progress(bool direct);
  [[nodiscard]] base::Time report_link_failures(base::Time now);
  [[nodiscard]] std::size_t awaited_bytes() const noexcept;
  void sleep(base::Time deadline);

  const TransportOptions options_;
  std::shared_ptr<membership::ControlProtocol> control_;
  std::shared_ptr<membership::Mailbox> mailbox_;
  std::vector<Peer> peers_;
  std::vector<Stream*> active_;  ///< with unfinished posts
  std::vector<Event> finished_;
  std::vector<Event> reported_;
  membership::LinkFailures link_failures_;
  int polls_without_look_ = 0;  ///< polls since the last look at the poller
  Backoff backoff_;
  std::atomic<bool> woken_{false};
  LinkTraffic traffic_;
};

}  // namespace syncopate::transport::tcp
