// How much of one rank's communication hid behind its computing: arithmetic on the spans of a traced step.
#pragma once

#include <vector>

#include "report/run.hpp"

namespace syncopate::tools::report {

struct Interval {
  double begin = 0, end = 0;
};

/// Disjoint, ascending, none empty.
using Intervals = std::vector<Interval>;

[[nodiscard]] Intervals merged(std::vector<Interval> parts);
[[nodiscard]] Intervals without(const Intervals& from, const Intervals& taken);
[[nodiscard]] double length(const Intervals& parts);

/// When the rank computed: every track but "exchange" and "wait", less the time in which it was blocked.
[[nodiscard]] Intervals computing(const std::vector<Span>& spans);
[[nodiscard]] Intervals covered(const std::vector<Span>& spans, const std::string& track);
/// The exchange spans in the order in which they began: the order of the run's buckets.
[[nodiscard]] std::vector<Span> exchanges(const std::vector<Span>& spans);

/// Where the time of a step went. exchange_s = hidden_s + exposed_s; exposed: while the rank did not compute.
struct Budget {
  double step_s = 0, forward_s = 0, backward_s = 0, optimizer_s = 0, wait_s = 0;
  double exchange_s = 0, hidden_s = 0, exposed_s = 0;
  double behind_backward_s = 0;  ///< the part of hidden_s that ran beside the backward pass
};

[[nodiscard]] Budget budget_of(const std::vector<Span>& spans);

/// One bucket's exchange in the traced step, averaged over the ranks that have a trace.
struct BucketCost {
  double seconds = kUnknown, exposed_s = kUnknown;
};

/// One per bucket of the run; unknown where the trace holds another number of exchanges.
[[nodiscard]] std::vector<BucketCost> bucket_costs(const Run& run);

}  // namespace syncopate::tools::report
