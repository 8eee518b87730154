// GroupState: a rank's view of its group: first failure, own operations, progress of the ranks, departed ranks.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "transport/membership/control.hpp"
#include "transport/membership/message.hpp"

namespace syncopate::transport::membership {

/// Thread-safe. No input or output: control feeds it with messages and takes its answers.
class GroupState final {
 public:
  static constexpr std::size_t kRemembered = 4096;  ///< operations
  static constexpr std::size_t kRememberedMessages = 64;

  explicit GroupState(int rank) : rank_(rank) {}

  [[nodiscard]] std::optional<Failure> failure() const;
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// Returns whether this is the first failure; later ones are dropped.
  bool decide(const Failure& failure);

  /// Returns the failure of beginning this operation, if any: a rank that left in order cannot take part in it.
  [[nodiscard]] std::optional<Failure> began(const OperationRecord& record);
  /// A rank left after its operation `number`; returns the failure that this causes here, if any.
  [[nodiscard]] std::optional<Failure> left(int rank, std::uint64_t number);
  [[nodiscard]] bool has_left(int rank) const;
  /// Ranks that left, and their last operations.
  [[nodiscard]] std::map<int, std::uint64_t> departed() const;

  [[nodiscard]] Progress progress() const;
  /// This rank's call of operation `number`; empty if not begun or forgotten.
  [[nodiscard]] std::string text_of(std::uint64_t number) const;
  [[nodiscard]] Heartbeat heartbeat_for(int neighbour) const;
  /// Records a neighbour's heartbeat; returns a Mismatch if it and this rank have called different operations.
  [[nodiscard]] std::optional<Failure> receive(int neighbour, const Heartbeat& beat);
  /// Compares with earlier heartbeats of neighbours, now that this rank may have reached their operations.
  [[nodiscard]] std::optional<Failure> compare() const;
  [[nodiscard]] std::string laggards(std::uint64_t number) const;

 private:
  struct Entry {
    std::uint64_t number = 0;
    std::uint64_t rolling = 0;
    std::string text;
  };
  /// A rank that left in order, after its operation `number`.
  struct Departed {
    std::uint64_t number = 0;
    Heartbeat last;  ///< if it was a neighbour; else empty
  };
  struct State {
    std::optional<Failure> failure;
    std::vector<Entry> entries;  ///< ring: operation n is at n mod kRemembered
    std::uint64_t last = 0;
    std::deque<OperationRecord> messages;  ///< the latest kRememberedMessages
    std::map<int, Heartbeat> neighbours;
    std::map<int, Departed> departed;
  };

  [[nodiscard]] static const Entry* entry_of(const State& state, std::uint64_t number);
  [[nodiscard]] Progress progress_in(const State& state) const;
  [[nodiscard]] std::optional<Failure> judge(const State& state, const Heartbeat& beat) const;
  [[nodiscard]] std::optional<Failure> judge_departed(const State& state) const;

  const int rank_;
  std::atomic<bool> failed_{false};
  base::Guarded<State> state_;
};

/// The Mismatch of two ranks with different calls of operation `number`.
[[nodiscard]] Failure mismatch_between(std::uint64_t number, const Progress& mine, const Progress& theirs);

}  // namespace syncopate::transport::membership
