// How much of one rank's communication hid behind its computing: arithmetic on the spans of a traced step.
#pragma once

#include <vector>

#include "report/record/run.hpp"

namespace syncopate::tools::report::record {

struct Interval {
  double begin = 0, end = 0;
};

/// Disjoint, ascending, none empty.
using Intervals = std::vector<Interval>;

[[nodiscard]] Intervals merged(std::vector<Interval> parts);
[[nodiscard]] Intervals without(const Intervals& from, const Intervals& taken);
[[nodiscard]] double length(const Intervals& parts);

/// Tracks that are not the training thread's: gradients and weights on their way, coding, updates, and copies.
[[nodiscard]] bool is_message(const Span& span);  ///< "exchange" or "broadcast"
[[nodiscard]] bool is_copy(const Span& span);     ///< between an accelerator and the CPU: "copy down" or "copy up"
[[nodiscard]] bool is_beside(const Span& span);   ///< a message, a copy, or "update", "encode", "decode"

/// When the training thread computed: its tracks but "wait", less the time in which it was blocked.
[[nodiscard]] Intervals computing(const std::vector<Span>& spans);
[[nodiscard]] Intervals covered(const std::vector<Span>& spans, const std::string& track);
/// The exchange spans in the order in which they began: the order of the run's buckets.
[[nodiscard]] std::vector<Span> exchanges(const std::vector<Span>& spans);

/// Whether the traced step begins with its backward pass, because its weights arrive during the next forward pass.
[[nodiscard]] bool starts_with_backward(const Run& run);

/// Where the time of a step went. exchange_s (of gradients and weights) = hidden_s + exposed_s; exposed: while the rank
/// did not compute. Passes do not count what they waited.
struct Budget {
  double step_s = 0, input_s = 0, forward_s = 0, backward_s = 0, optimizer_s = 0, wait_s = 0;
  double exchange_s = 0, hidden_s = 0, exposed_s = 0;
  double behind_backward_s = 0, behind_forward_s = 0;  ///< the parts of hidden_s that overlapped that pass
  double copy_s = 0, hidden_copy_s = 0;                ///< of copies in both directions; while the rank computed
};

[[nodiscard]] Budget budget_of(const std::vector<Span>& spans);

/// One bucket's exchange in the traced step, averaged over the ranks that have a trace.
struct BucketCost {
  double seconds = kUnknown, exposed_s = kUnknown;
};

/// One per bucket of the run; unknown where the trace holds another number of exchanges.
[[nodiscard]] std::vector<BucketCost> bucket_costs(const Run& run);

}  // namespace syncopate::tools::report::record
