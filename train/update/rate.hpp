// The learning rate of a step: linear warm-up, then a factor at each milestone.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::train {

struct RateSchedule {
  double learning_rate = 0.1;
  std::uint64_t warmup = 0;
  std::vector<std::uint64_t> milestones;
  double decay = 0.1;
};

/// The rate of step `step` (counted from 0): lr * min(1, (step + 1) / warmup) * decay^(milestones <= step).
[[nodiscard]] inline double learning_rate_at(const RateSchedule& schedule, std::uint64_t step) {
  double rate = schedule.learning_rate;
  if (step < schedule.warmup) rate *= static_cast<double>(step + 1) / static_cast<double>(schedule.warmup);
  for (const std::uint64_t milestone : schedule.milestones)
    if (step >= milestone) rate *= schedule.decay;
  return rate;
}

}  // namespace syncopate::train
