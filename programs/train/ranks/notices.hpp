// Ranks exchange notices a few times per second: a signal that ends the run, and where a value first was not finite.
#pragma once

#include <cstdint>
#include <string>

#include "syncopate/error.hpp"
#include "syncopate/group.hpp"

namespace syncopate::train {

/// One small all-reduce each quarter of a second, or each step if steps take longer. All ranks leave the run after the
/// same step. A NaN reaches all ranks, but only the rank where it appeared first reports it.
class Notices final {
 public:
  /// `alone`: each rank trains for itself, and no notices are exchanged.
  Notices(Group& group, bool alone) : group_(group), alone_(alone || group.size() == 1) {}

  void signal_came(int number) { asked_by_ = number; }  ///< on this rank; 0: none
  /// Notes the value that was not finite on this rank ("the loss", "the gradient of fc1.weight"); only the first
  /// counts.
  void not_finite(std::uint64_t step, const std::string& what);

  /// Every rank calls both at the same places, with no exchange of gradients under way. The slowest rank's
  /// `last_step_s` sets the pace of exchange_when_due; 0: no step has run yet.
  void exchange_when_due(double last_step_s);
  void exchange(double last_step_s);

  /// The signal that ends the run on all ranks, as of the last exchange; 0: none.
  [[nodiscard]] int signal() const noexcept { return signal_; }
  /// The text that this rank must report about its value that was not finite, once in a run; else empty.
  [[nodiscard]] std::string take_not_finite();

 private:
  static constexpr std::int64_t kNever = INT64_MAX;

  Group& group_;
  const bool alone_;
  int asked_by_ = 0, signal_ = 0;
  std::uint64_t steps_until_exchange_ = 0;
  std::int64_t found_ = kNever;  ///< step x ranks + rank; the minimum over all ranks is where it appeared first
  std::string first_, to_say_;
  bool is_reported_ = false;  ///< reported by this rank or another
};

}  // namespace syncopate::train
