// Record: what one rank saw of its steps, and what that says of the model and the network.
#pragma once

#include <span>
#include <vector>

#include "schedule/evaluate.hpp"
#include "syncopate/group.hpp"

namespace syncopate::sync::planning {

/// One step. Seconds since the step before had ended.
struct StepRecord {
  std::vector<double> ready_s;                    ///< by gradient
  std::vector<schedule::BucketTiming> exchanges;  ///< in their order; `ready_s` of a passage is left out
  double end_s = 0;                               ///< the caller had everything
};

/// Several steps under one partition: medians, and every exchange.
struct Measurement {
  std::vector<double> ready_s;
  std::vector<schedule::Point> exchanges;
  double tail_s = 0;             ///< from the last exchange's end to the step's
  double backward_s = 0;         ///< from the first gradient to the last
  double bytes_overlapping = 0;  ///< bytes of exchanges that had begun when the last gradient became ready
};

[[nodiscard]] Measurement measurement_of(std::span<const StepRecord> steps);
/// What the group saw: a gradient is ready when it is on the last rank, and an exchange takes as long as it took the
/// rank that came last to it: the others also waited for that one. A collective; equal on all ranks afterwards.
void combine(Group& group, Measurement& mine);

}  // namespace syncopate::sync::planning
