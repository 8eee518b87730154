// Record: what one rank measured in its steps, and what follows for the model and the network.
#pragma once

#include <span>
#include <vector>

#include "schedule/evaluate.hpp"
#include "syncopate/group.hpp"

namespace syncopate::sync::planning {

/// One step. Seconds since the previous step ended.
struct StepRecord {
  std::vector<double> ready_s;                    ///< by gradient
  std::vector<schedule::BucketTiming> exchanges;  ///< in order; their `ready_s` is not set
  double end_s = 0;                               ///< the caller's wait returned
};

/// Several steps under one partition: medians, and every exchange.
struct Measurement {
  std::vector<double> ready_s;
  std::vector<schedule::Point> exchanges;
  double tail_s = 0;             ///< from the end of the last exchange to the end of the step
  double backward_s = 0;         ///< from the first ready gradient to the last
  double bytes_overlapping = 0;  ///< bytes of exchanges that began before the last gradient was ready
};

[[nodiscard]] Measurement measurement_of(std::span<const StepRecord> steps);
/// Combines the measurements of all ranks: a gradient is ready when it is ready on the last rank; an exchange takes the
/// time of the rank that entered it last, because the other ranks also waited for that one. A collective; the result is
/// the same on all ranks.
void combine(Group& group, Measurement& mine);

}  // namespace syncopate::sync::planning
