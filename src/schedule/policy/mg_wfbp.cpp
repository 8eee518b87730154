// Merged-gradient wait-free backpropagation: a layer waits for the one before it if that costs less than a startup.
// Shi, Chu & Li, "MG-WFBP", INFOCOM 2019, Algorithm 1, with three corrections: a in Theorem 1 (not b), bytes (not
// parameters) in T, and tau_b[0], undefined in the paper, is the end of the backward pass. It is not optimal, contrary
// to Theorem 1: each merge is judged alone, and the waits add up (counter-example: docs/scheduling_theory.md).
//
//   tau_c[L] = ready[L];   tau_c[l-1] = max(tau_c[l] + t_c[l], ready[l-1])
//   for l = L..2:   ready[l-1] - tau_c[l] < a   ->   l in M:  t_c[l] = 0,  M[l-1] += M[l],  t_c[l-1] = T(M[l-1])
//
// The paper recomputes all tau_c after each merge, O(L^2). Only the last one is ever read, so this is O(L). The
// algorithm does not consider that communication slows computing.
#include <algorithm>

#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

Partition partition(const Timeline& timeline, const PolicyOptions& options) {
  const Cost& cost = required_cost("mg_wfbp", timeline, options);
  const std::vector<double> ready = ready_times(timeline);
  Partition buckets;
  std::size_t last = timeline.layers.size() - 1;
  double begin_s = ready[last];                                     // tau_c[l]
  double bytes = static_cast<double>(timeline.layers[last].bytes);  // of l and the layers merged into it
  for (std::size_t layer = last; layer > 0; --layer) {
    if (ready[layer - 1] - begin_s < cost.startup_s()) {
      begin_s = std::max(begin_s, ready[layer - 1]);
    } else {
      buckets.push_back({layer, last});
      begin_s = std::max(begin_s + cost(bytes), ready[layer - 1]);
      last = layer - 1;
      bytes = 0;
    }
    bytes += static_cast<double>(timeline.layers[layer - 1].bytes);
  }
  buckets.push_back({0, last});
  return buckets;
}

}  // namespace

extern constinit const Policy mg_wfbp{
    .name = "mg_wfbp",
    .summary = "Merges a layer with the one before it if waiting for that costs less than a message",
    .source = "MG-WFBP Algorithm 1, with errata corrected",
    .partition = partition,
    .needs = Needs::times,
};

}  // namespace syncopate::schedule::policy
