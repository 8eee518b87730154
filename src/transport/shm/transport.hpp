// Transport for ranks of which some share this host: memory with those, sockets with the others, one wait for both.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transport/shm/link.hpp"
#include "transport/tcp/transport.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::shm {

struct ShmOptions {
  int rank = 0;
  std::vector<bool> near;      ///< by rank: shares memory with this one
  bool crowded = false;        ///< this host has more ranks than cores for them
  std::shared_ptr<Heap> heap;  ///< size 0: vectors are copied
};

/// Awake, it looks at memory and (if posts wait there) at sockets in turn. Asleep, it waits in the sockets' poller,
/// which also receives control's news and the links' wake-ups. README.md describes the phases of a wait.
class ShmTransport final : public Transport, private Lending {
 public:
  ShmTransport(ShmOptions options, std::unique_ptr<tcp::TcpTransport> far,
               std::shared_ptr<membership::ControlProtocol> control, std::shared_ptr<membership::Mailbox> mailbox);

  [[nodiscard]] FrameLengths frame_lengths(int peer) const noexcept override;
  [[nodiscard]] Lending* lending() noexcept override { return this; }
  void send(const Frame& frame) override;
  void receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) override;
  void release(std::uint64_t token) override;
  [[nodiscard]] std::span<const Event> poll(base::Time deadline, Patience patience) override;
  void wake() noexcept override;
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override;

 private:
  class Wait;

  [[nodiscard]] std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override;
  [[nodiscard]] bool reaches(base::ConstBytes vector) const noexcept override;
  void lend(const Frame& frame) override;
  [[nodiscard]] ReplyMemory reply_memory(std::uint64_t arrival, int peer) override;
  void reply(std::uint64_t arrival, const Frame& frame) override;

  [[nodiscard]] bool is_near(int rank) const noexcept;
  /// Null for a rank that is not near.
  [[nodiscard]] Link* link_to(int rank);
  Link& open_link(int rank);
  void touch(Link& link);
  void collect_news();
  [[noreturn]] void give_up();
  void look_far(base::Time deadline, Patience patience);
  void progress();
  [[nodiscard]] base::Time report_link_failures(base::Time at);
  void sleep(base::Time at, base::Time deadline);

  const ShmOptions options_;
  std::unique_ptr<tcp::TcpTransport> far_;
  std::shared_ptr<membership::ControlProtocol> control_;
  std::shared_ptr<membership::Mailbox> mailbox_;
  membership::LinkFailures link_failures_;
  Backoff backoff_;
  std::vector<std::unique_ptr<Link>> links_;  ///< by rank; null until the first post or connection
  std::vector<Link*> known_;                  ///< the non-null entries of `links_`
  std::vector<Link*> active_;                 ///< with unfinished posts
  std::vector<Event> finished_;
  std::vector<Event> reported_;
  std::atomic<bool> woken_{false};
  LinkTraffic traffic_;
};

}  // namespace syncopate::transport::shm
