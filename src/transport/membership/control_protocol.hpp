// ControlProtocol: keeps the control tree, accepts data connections, and spreads failures. It is fed, and never waits.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/beat.hpp"
#include "base/guarded.hpp"
#include "syncopate/log.hpp"
#include "syncopate/tooling/blame.hpp"
#include "transport/connect/acceptor.hpp"
#include "transport/membership/control.hpp"
#include "transport/membership/group_state.hpp"
#include "transport/membership/mailbox.hpp"
#include "transport/membership/tree_edges.hpp"

namespace syncopate::transport::membership {

struct ControlOptions {
  int rank = 0;
  std::vector<socket::Address> addresses;       ///< where each rank listens
  std::vector<socket::Address> memory_sockets;  ///< where it listens for ranks that share memory; empty: it shares none
  socket::Address source;                       ///< connections leave from here
  std::uint64_t group = 0;
  std::string secret;
  connect::Digest meeting{};  ///< digest of all texts of the rendezvous
  bool tls = false;           ///< encrypts connections, except those for memory
  std::uint32_t streams = 1;  ///< data connections per pair
  base::Duration silence = std::chrono::seconds(2);
  Log log;
  std::optional<BlameDescriptor> blame{};  ///< receives the first failed rank, for `run`
  /// Limit for the edges of the tree to be made, in time during which this process runs.
  base::Duration join_time = std::chrono::hours(24 * 366);
};

/// A state machine without its own thread or clock: time is that of its mailbox's system. Laws: only the feeding thread
/// touches tree, acceptor and questions; others reach it through `orders_` and its poller's wake. The group state
/// answers questions of any thread. Data connections leave through the mailbox. If it is destroyed without `leave`, the
/// other ranks see a lost rank.
class ControlProtocol : public Control {
 public:
  /// Begins the tree (not for a group of one rank). The first of the listeners is at addresses[rank], the second, if
  /// there is one, at memory_sockets[rank].
  ControlProtocol(ControlOptions options, std::vector<socket::Descriptor> listeners, std::shared_ptr<Mailbox> mailbox);
  ControlProtocol(const ControlProtocol&) = delete;
  ControlProtocol& operator=(const ControlProtocol&) = delete;

  // All functions until `is_gone` are for the feeding thread.

  /// The feeding thread waits here, until `next_deadline` at the latest.
  [[nodiscard]] socket::Poller& poller() noexcept { return poller_; }
  [[nodiscard]] base::Time next_deadline() const;
  /// One step: handles ready descriptors and expired deadlines. Throws an error after which the group must end, see
  /// `give_up`.
  void feed(std::span<const socket::Ready> ready);
  /// Without control the group cannot continue; the failure spreads as far as the tree still works.
  void give_up(const std::exception& error) { learn(failure_of(error, options_.rank), options_.rank); }
  /// Sends the goodbye. Must then be fed until it is gone: until its neighbours have regrouped, at most a second, or
  /// until a silent neighbour sends again or is lost. After a failure it is gone when the failure was passed on: within
  /// 200 ms, or within `grace` if a neighbour reads slowly.
  void leave();
  [[nodiscard]] bool is_gone() const;
  /// Reads what is still ready when it is gone.
  void drain(std::span<const socket::Ready> ready);

  /// Whether every edge of the tree that ends here exists. Throws the failure.
  [[nodiscard]] bool has_joined() const;
  /// Makes the data connections to a lower rank, or awaits those of a higher one; the mailbox delivers them.
  void connect_data(int peer);
  /// Makes or awaits, in the same way, the connection for sharing memory with a rank of this host.
  void connect_memory(int peer);
  [[nodiscard]] bool has_left(int peer) const final { return state_.has_left(peer); }

  [[nodiscard]] std::optional<Failure> failure() const final { return state_.failure(); }
  [[nodiscard]] bool failed() const noexcept final { return state_.failed(); }
  void report(Failure failure) final;
  void began(const OperationRecord& record) final;
  void mismatch(int peer, std::uint64_t number) final;
  [[nodiscard]] std::string laggards(std::uint64_t number) const final { return state_.laggards(number); }
  [[nodiscard]] base::Duration grace() const final;

 protected:
  [[nodiscard]] int size() const noexcept { return static_cast<int>(options_.addresses.size()); }
  /// Waits until every edge exists or the group has failed.
  void await_joined();
  [[nodiscard]] const ControlOptions& options() const noexcept { return options_; }

 private:
  struct Order {
    enum class Kind : std::uint8_t { connect_data, connect_memory, ask } kind;
    int peer;
    std::uint64_t number;
  };
  struct OpenQuestion {
    int peer;
    std::uint64_t number;
    base::Time deadline;
  };

  [[nodiscard]] connect::Hello hello(connect::Purpose purpose, int to, std::uint32_t stream) const;
  void learn(const Failure& failure, int from);
  void lost(int rank, const std::string& reason);
  void ran_out_of_sockets(const std::string& reason);

  // All functions below are for the feeding thread.
  void dispatch(std::span<const socket::Ready> ready);
  void run_orders();
  void take_connections();
  [[nodiscard]] bool is_near(int rank) const noexcept;
  [[nodiscard]] bool has_links(int rank) const;
  [[nodiscard]] bool awaits_callers() const;
  void close_listeners();
  void take(connect::Connection connection);
  [[nodiscard]] bool assign(connect::Connection& connection);
  void take(const connect::Refusal& refusal);
  void catch_up(int rank);
  void read_tree();
  void receive(int from, const std::string& bytes);
  void take(int from, const Heartbeat& beat);
  void take(int from, const Failure& failure);
  void take(int from, const Goodbye& goodbye);
  void take(int from, const Question& question);
  void take(int from, const Reply& reply);
  void take(int from, const Regrouped& regrouped);
  void relay(int from, const Message& message);
  [[nodiscard]] Goodbye own_goodbye() const;
  void age_joining(base::Duration ran);
  /// Whether edges may be missing that joining waits for.
  [[nodiscard]] bool is_joining() const noexcept { return !has_all_edges_ && !state_.failed() && !leaves(); }
  void regroup();
  void withdraw(const std::set<int>& departed);
  void part_from(const std::set<int>& departed);
  void call(int rank);
  void repeat_calls();
  void expire_questions(base::Time now);
  void tick();
  void spread_failure(int except);
  void decide_end();
  [[nodiscard]] bool may_go() const;
  [[nodiscard]] bool leaves() const noexcept { return go_at_ != base::kNever; }
  [[nodiscard]] base::Time now() const noexcept { return poller_.system().now(); }

  const ControlOptions options_;
  std::shared_ptr<Mailbox> mailbox_;
  GroupState state_;
  base::Guarded<std::vector<Order>> orders_;
  base::Guarded<std::set<int>> joined_;  ///< neighbours whose edge exists
  socket::Poller poller_;
  base::Beat beat_;
  connect::Acceptor acceptor_;
  TreeEdges tree_;
  std::vector<OpenQuestion> questions_;
  std::set<std::pair<int, std::uint32_t>> data_links_;  ///< (peer, stream) that were delivered
  std::set<int> memory_links_;                          ///< peers that were delivered
  std::set<int> awaited_links_;                         ///< peers whose connections the polling thread waits for
  base::Duration joining_for_{0};
  bool has_all_edges_ = false;     ///< all edges of this rank in the whole tree
  std::set<int> departed_before_;  ///< ranks that left before this rank
  std::set<int> call_again_;       ///< expected ranks that could not be reached
  base::Time call_again_at_ = base::kNever;
  std::set<std::string> relayed_;    ///< questions and replies that must not circulate while ranks regroup
  bool spread_ = false;              ///< the failure was sent
  base::Time go_at_ = base::kNever;  ///< this rank leaves, and is gone at this time
};

}  // namespace syncopate::transport::membership
