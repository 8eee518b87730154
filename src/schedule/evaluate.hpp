// Evaluate: when every bucket leaves and arrives, how long the step takes, and what of the exchange shows.
#pragma once

#include "schedule/cost.hpp"
#include "schedule/timeline.hpp"

namespace syncopate::schedule {

/// One bucket's way: its last gradient is ready, its exchange begins, its exchange ends. Seconds of the step.
struct BucketTiming {
  Bucket bucket;
  std::size_t bytes = 0;
  double ready_s = 0, begin_s = 0, end_s = 0;
};

struct Evaluation {
  double compute_s = 0;    ///< forward and backward pass, undisturbed
  double exchange_s = 0;   ///< all exchanges
  double iteration_s = 0;  ///< until the last exchange has ended
  double exposed_s = 0;    ///< iteration_s - compute_s: what the exchange adds to the step
  std::vector<BucketTiming> passages;
};

/// When each layer's gradient is ready, in forward order: ready[l] = t_f + sum of t_b[j] over j >= l (MG-WFBP
/// equations 6 and 7), if nothing is exchanged meanwhile.
[[nodiscard]] std::vector<double> ready_times(const Timeline& timeline);
[[nodiscard]] std::size_t bytes_of(const Timeline& timeline, const Bucket& bucket);

/// One exchange at a time, in the partition's order, each as soon as it may (MG-WFBP equations 7 and 8). While bytes
/// move, computing loses cost.cpu_s_per_byte for each, so later gradients come later. `partition` must be legal.
[[nodiscard]] Evaluation evaluate(const Timeline& timeline, const Partition& partition, const Cost& cost);

}  // namespace syncopate::schedule
