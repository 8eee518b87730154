// Message queues: messages under way between this rank and others, any number of them together.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <vector>

#include "collective/engine/execute.hpp"
#include "collective/group/request.hpp"
#include "transport/membership/control.hpp"

namespace syncopate::collective::group {

/// A queue has the messages to one peer, or those from it. They follow each other in the order of the calls, so that
/// the k-th message from one rank to another meets the k-th receive; queues do not wait for each other. One thread at a
/// time.
class MessageQueues final {
 public:
  struct Options {
    int rank = 0;
    /// Of one message, from when those before it in its queue are over; read when a message begins.
    const std::atomic<base::Duration>* timeout = nullptr;
    const base::Clock* clock = nullptr;
  };
  MessageQueues(const Options& options, transport::Transport& links, transport::membership::Control& control)
      : options_(options), links_(links), control_(control) {}

  /// Takes a message on. Its buffers must stay until `wait` has returned its id, or `clear`.
  void add(std::uint64_t id, const Request& request);
  [[nodiscard]] bool empty() const noexcept { return legs_left_.empty(); }
  /// Waits for the links once, at most until `until`, and returns what is over since the last call. Throws what they
  /// throw, and Timeout.
  [[nodiscard]] std::vector<std::uint64_t> wait(transport::Patience patience, base::Time until);
  /// Forgets all messages: the group has failed, and its links have let go of them.
  void clear() noexcept;

 private:
  /// One way of a message; an exchange has two.
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
    std::deque<Leg> legs{};                           ///< the front one is the one that was begun
    transport::membership::OperationRecord record{};  ///< of that one
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
  std::deque<Queue> queues_;                      ///< an event's token says which
  std::map<std::pair<int, int>, Queue*> by_way_;  ///< by sender and receiver
  std::map<std::uint64_t, int> legs_left_;        ///< by message
  std::vector<std::uint64_t> over_;
};

}  // namespace syncopate::collective::group
