// The learning rate of a step: linear warm-up, then a factor at each milestone; in a part of a recipe, a line.
#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/input.hpp"

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

/// A linear rate: from the first step of these epochs to the value after their last step.
struct RateLine {
  double from = 0, to = 0;
  std::uint64_t first_epoch = 0, epochs = 1;
};

/// The rate at a position in these epochs; their length is counted in samples, so it is equal for every number of
/// ranks.
[[nodiscard]] inline double learning_rate_at(const RateLine& line, const input::Progress& at, std::size_t samples) {
  const double in_epoch = static_cast<double>(at.sample) / static_cast<double>(samples);
  const double share = (static_cast<double>(at.epoch - line.first_epoch) + in_epoch) / static_cast<double>(line.epochs);
  return line.from + (line.to - line.from) * share;
}

}  // namespace syncopate::train
