// TreeControl: a thread per rank that keeps the control tree, lets data connections in, and spreads failures.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "syncopate/log.hpp"
#include "transport/connect/acceptor.hpp"
#include "transport/membership/control.hpp"
#include "transport/membership/control_tree.hpp"
#include "transport/membership/group_state.hpp"
#include "transport/membership/mailbox.hpp"
#include "transport/membership/tree_shape.hpp"

namespace syncopate::transport::membership {

struct ControlOptions {
  int rank = 0;
  std::vector<socket::Address> addresses;       ///< where each rank listens
  std::vector<socket::Address> memory_sockets;  ///< where it listens for ranks that share memory; empty: not this one
  socket::Address source;                       ///< connections leave from here
  std::uint64_t group = 0;
  std::string secret;
  connect::Digest meeting{};  ///< of all that was said at the rendezvous
  bool tls = false;           ///< connections are encrypted, but those for memory
  std::uint32_t streams = 1;  ///< data connections per pair
  base::Duration silence = std::chrono::seconds(2);
  Log log;
  bool blames = false;  ///< tells `run` when the group fails
};

/// Laws: the control thread alone touches tree, acceptor and questions; others reach it through `orders_` and its
/// poller's wake. What any thread may ask is in the group state. Data connections leave through the mailbox.
class TreeControl final : public Control {
 public:
  /// Starts the thread and the tree (nothing of both for a group of one rank). The first of the listeners is at
  /// addresses[rank], the second, if there is one, at memory_sockets[rank].
  TreeControl(ControlOptions options, std::vector<socket::Descriptor> listeners, std::shared_ptr<Mailbox> mailbox);
  /// Says goodbye and stays until its neighbours have regrouped, a second at most; or hands on the failure, within
  /// 200 ms.
  ~TreeControl() override;
  TreeControl(const TreeControl&) = delete;
  TreeControl& operator=(const TreeControl&) = delete;

  /// Waits until every edge of the tree that ends here exists; throws Timeout or the failure.
  void wait_joined(base::Time deadline);
  /// Makes the data connections to a lower rank; they come through the mailbox.
  void connect_data(int peer);
  /// Makes the connection over which to open memory with a lower rank of this host.
  void connect_memory(int peer);
  [[nodiscard]] bool has_left(int peer) const override { return state_.has_left(peer); }

  [[nodiscard]] std::optional<Failure> failure() const override { return state_.failure(); }
  [[nodiscard]] bool failed() const noexcept override { return state_.failed(); }
  void report(Failure failure) override;
  void began(const OperationRecord& record) override;
  void mismatch(int peer, std::uint64_t number) override;
  [[nodiscard]] std::string laggards(std::uint64_t number) const override { return state_.laggards(number); }

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

  void begin();
  [[nodiscard]] int size() const noexcept { return static_cast<int>(options_.addresses.size()); }
  [[nodiscard]] connect::Hello hello(connect::Purpose purpose, int to, std::uint32_t stream) const;
  void learn(const Failure& failure, int from);
  void lost(int rank, const std::string& reason);
  void ran_out_of_sockets(const std::string& reason);

  // All below run on the control thread.
  void run(const std::stop_token& stop);
  void step();
  void dispatch(std::span<const socket::Ready> ready);
  void run_orders();
  void take_connections();
  void take(connect::Connection connection);
  [[nodiscard]] bool assign(connect::Connection& connection);
  void take(const connect::Refusal& refusal);
  void catch_up(int rank);
  void read_tree();
  void hear(int from, const std::string& bytes);
  void take(int from, const Heartbeat& beat);
  void take(int from, const Failure& failure);
  void take(int from, const Goodbye& goodbye);
  void take(int from, const Question& question);
  void take(int from, const Reply& reply);
  void take(int from, const Regrouped& regrouped);
  void relay(int from, const Message& message);
  void regroup();
  void call(int rank);
  void repeat_calls();
  void expire_questions(base::Time now);
  void tick(base::Time now);
  void spread_failure(int except);
  [[nodiscard]] base::Time next_deadline() const;
  void leave();
  [[nodiscard]] bool may_go() const;

  const ControlOptions options_;
  const base::Duration beat_;  ///< time between heartbeats
  std::shared_ptr<Mailbox> mailbox_;
  GroupState state_;
  base::Guarded<std::vector<Order>> orders_;
  base::Guarded<std::set<int>> joined_;  ///< neighbours whose edge has come up
  socket::Poller poller_;
  connect::Acceptor acceptor_;
  ControlTree tree_;
  std::vector<OpenQuestion> questions_;
  std::set<std::pair<int, std::uint32_t>> data_links_;  ///< (peer, stream) handed out
  std::set<int> memory_links_;                          ///< peers handed out
  base::Time last_run_{};
  base::Time next_beat_{};
  std::set<int> call_again_;  ///< expected ranks that could not be reached
  base::Time call_again_at_ = base::kNever;
  std::set<std::string> relayed_;    ///< questions and replies, which would go round while ranks regroup
  bool spread_ = false;              ///< the failure is on its way
  base::Time go_at_ = base::kNever;  ///< it leaves, and is gone then
  std::jthread thread_;              ///< last: ends before what it uses
};

}  // namespace syncopate::transport::membership
