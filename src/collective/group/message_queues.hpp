// Message queues: messages in progress between this rank and others, any number at the same time.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <vector>

#include "collective/engine/execute.hpp"
#include "collective/group/request.hpp"
#include "transport/membership/control.hpp"

namespace syncopate::collective::group {

/// A queue holds the messages to one peer, or those from it. They run in the order of the calls, so that the k-th
/// message from one rank to another matches the k-th receive. Queues do not wait for each other. Used by one thread at
/// a time.
class MessageQueues final {
 public:
  struct Options {
    int rank = 0;
    /// Limit of one message, from the end of those before it in its queue; read when a message begins.
    const std::atomic<base::Duration>* timeout = nullptr;
    const base::Clock* clock = nullptr;
  };
  MessageQueues(const Options& options, transport::Transport& links, transport::membership::Control& control)
      : options_(options), links_(links), control_(control) {}

  /// Adds a message. Its buffers must stay alive until `wait` has returned its id, or until `clear`.
  void add(std::uint64_t id, const Request& request);
  [[nodiscard]] bool empty() const noexcept { return legs_left_.empty(); }
  /// Waits for the links once, at most until `until`, and returns the messages that have ended since the last call.
  /// Throws what the links throw, and Timeout.
  [[nodiscard]] std::vector<std::uint64_t> wait(transport::Patience patience, base::Time until);
  /// Drops all messages, after the group has failed and its links have released them.
  void clear() noexcept;

 private:
  /// One direction of a message; an exchange has two.
  struct Leg {
    std::uint64_t message = 0;
    Buffer data;
    std::string tensor;
  };
  struct Queue {
    Queue(int from, int to, std::size_t index, MessageQueues& queues);
    int from, to;
    std::uint64_t first_token;
    plan::Program program;
    engine::Execution execution;
    std::uint64_t count = 0;                          ///< messages begun so far
    std::deque<Leg> legs{};                           ///< the front one is in progress
    transport::membership::OperationRecord record{};  ///< record of the front leg
    base::Time deadline = base::kNever;
  };

  void add_leg(std::pair<int, int> way, Leg leg);
  void begin(Queue& queue);
  void finish(Queue& queue);
  [[nodiscard]] base::Time first_deadline() const noexcept;
  void check_deadlines() const;

  Options options_;
  transport::Transport& links_;
  transport::membership::Control& control_;
  engine::Scratch scratch_;
  std::deque<Queue> queues_;                      ///< an event's token holds the index
  std::map<std::pair<int, int>, Queue*> by_way_;  ///< by sender and receiver
  std::map<std::uint64_t, int> legs_left_;        ///< by message
  std::vector<std::uint64_t> over_;
};

}  // namespace syncopate::collective::group
