// Online: whenever the channel is free, all ready gradients leave in one message. Needs no profile and no cost.
// schedule/dispatch runs the rule during a step; this file predicts it on a timeline. The step is longer than the
// optimum by at most the second-to-last exchange, so it is less than twice as long, for every cost that increases with
// the bytes and for which two messages cost at least as much as one (proof: docs/scheduling_theory.md).
//
//   backward   |L6|L5|L4|L3|L2|L1|
//   exchange      | 6   | 5 4  | 3 2 1 |
#include <algorithm>

#include "schedule/dispatch.hpp"
#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

Partition partition(const Timeline& timeline, const PolicyOptions& options) {
  const Cost& cost = required_cost("online", timeline, options);
  const std::vector<double> ready = ready_times(timeline);
  OnlineDispatch dispatch(timeline.layers.size());
  Partition buckets;
  std::size_t next = timeline.layers.size();  // layers from here on have been reported
  double free_s = 0, stretch_s = 0;
  while (!dispatch.all_sent()) {
    const std::size_t awaited = dispatch.frontier() - 1;
    free_s = std::max(free_s, ready[awaited] + stretch_s);
    while (next > 0 && (next > awaited || ready[next - 1] + stretch_s <= free_s)) dispatch.ready(--next);
    buckets.push_back(*dispatch.decide());
    const auto bytes = static_cast<double>(bytes_of(timeline, buckets.back()));
    free_s += cost(bytes);
    stretch_s += cost.cpu_s_per_byte * bytes;
  }
  return buckets;
}

}  // namespace

extern constinit const Policy online{
    .name = "online",
    .summary = "Sends everything that is ready whenever the channel is free",
    .source = "ours; equals ASC-WFBP's merging (INFOCOM 2021) up to ties",
    .partition = partition,
    .needs = Needs::events,
};

}  // namespace syncopate::schedule::policy
