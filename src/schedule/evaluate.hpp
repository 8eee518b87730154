// Evaluate: when every bucket begins and ends, the length of the step, and the exposed communication.
#pragma once

#include "schedule/cost.hpp"

namespace syncopate::schedule {

/// Times of one bucket: its last gradient is ready, its exchange begins, its exchange ends. Seconds since the step
/// began.
struct BucketTiming {
  Bucket bucket;
  std::size_t bytes = 0;
  double ready_s = 0, begin_s = 0, end_s = 0;
};

struct Evaluation {
  double compute_s = 0;    ///< forward and backward pass without communication
  double exchange_s = 0;   ///< sum of all exchanges
  double iteration_s = 0;  ///< from the start of the step to the end of the last exchange
  double exposed_s = 0;    ///< iteration_s - compute_s
  std::vector<BucketTiming> timings;
};

/// The time at which each layer's gradient is ready if nothing is exchanged, in forward order (MG-WFBP equations 6 and
/// 7): ready[l] = t_f + sum of t_b[j] over j >= l.
[[nodiscard]] std::vector<double> ready_times(const Timeline& timeline);
[[nodiscard]] std::size_t bytes_of(const Timeline& timeline, const Bucket& bucket);

/// Exchanges run one at a time in the partition's order, each as soon as possible (MG-WFBP equations 7 and 8). Each
/// byte that moves delays computing by cost.cpu_s_per_byte, so later gradients become ready later. `partition` must be
/// legal.
[[nodiscard]] Evaluation evaluate(const Timeline& timeline, const Partition& partition, const Cost& cost);

}  // namespace syncopate::schedule
