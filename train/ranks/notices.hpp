// What ranks tell one another a few times a second: a signal that ends the run, and where a value first was not finite.
#pragma once

#include <cstdint>
#include <string>

#include "syncopate/error.hpp"
#include "syncopate/group.hpp"

namespace syncopate::train {

/// One small all-reduce each quarter of a second, or each step where steps take longer: ranks leave the run after the
/// same step, and of all the ranks that a NaN has reached only the one where it appeared says so.
class Notices final {
 public:
  /// `alone`: each rank trains for itself and tells nobody.
  Notices(Group& group, bool alone) : group_(group), alone_(alone || group.size() == 1) {}

  void signal_came(int number) { asked_by_ = number; }  ///< to this rank; 0: none
  /// What was not finite on this rank ("the loss", "the gradient of fc1.weight"): only the first counts.
  void not_finite(std::uint64_t step, const std::string& what);

  /// Every rank calls both at the same places, with no exchange of gradients under way. The slowest rank's
  /// `last_step_s` sets the pace of the first; 0: there has been no step.
  void exchange_when_due(double last_step_s);
  void exchange(double last_step_s);

  /// Of all ranks, as of the last exchange: the signal that ends the run; 0: none.
  [[nodiscard]] int signal() const noexcept { return signal_; }
  /// What this rank shall say of its value that was not finite, once in a run; empty: nothing.
  [[nodiscard]] std::string take_not_finite();

 private:
  static constexpr std::int64_t kNever = INT64_MAX;

  Group& group_;
  const bool alone_;
  int asked_by_ = 0, signal_ = 0;
  std::uint64_t steps_until_exchange_ = 0;
  std::int64_t found_ = kNever;  ///< step x ranks + rank: the least of all ranks' is where it appeared first
  std::string first_, to_say_;
  bool said_ = false;  ///< by this rank or another
};

}  // namespace syncopate::train
