// Exact optimum by dynamic programming: no partition into runs of layers ends the step earlier, for any cost.
// It has the property that MG-WFBP's Theorem 1 claims for Algorithm 1. Proof: docs/scheduling_theory.md.
//
//   j = 1..L in backward order; S[j] bytes up to j; c = cost.cpu_s_per_byte
//   f[0] = 0;   f[j] = min over i < j of  max(f[i], ready[j] + c S[i]) + T(S[j] - S[i])
//   f[j]: the earliest end of all exchanges up to j. An earlier f[i] never makes a later exchange end later, so
//   prefixes can be optimised separately. By f[i] computing has been delayed by c S[i], however the bytes were cut.
//
// O(L^2) time, O(L) memory. Among prefixes that end equally early (to 1e-12, so that rounding has no effect) it takes
// the one with fewer messages, then the one with the smaller last bucket.
#include <algorithm>
#include <limits>

#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

/// For a number of layers from the back: bytes, the earliest end, and the first layer of the last bucket then.
struct Prefix {
  double bytes = 0;
  double end_s = std::numeric_limits<double>::infinity();
  std::size_t messages = 0;
  std::size_t before = 0;
};

bool is_better(double end_s, std::size_t messages, const Prefix& than) {
  constexpr double kEqual = 1e-12;
  if (end_s < than.end_s * (1 - kEqual)) return true;
  return end_s <= than.end_s * (1 + kEqual) && messages < than.messages;
}

Partition partition(const Timeline& timeline, const PolicyOptions& options) {
  const Cost& cost = required_cost("exact_dp", timeline, options);
  const std::vector<double> ready = ready_times(timeline);
  const std::size_t layers = timeline.layers.size();
  std::vector<Prefix> prefixes(layers + 1);
  prefixes[0].end_s = 0;
  for (std::size_t j = 1; j <= layers; ++j) {
    Prefix& prefix = prefixes[j];
    prefix.bytes = prefixes[j - 1].bytes + static_cast<double>(timeline.layers[layers - j].bytes);
    for (std::size_t i = j; i-- > 0;) {
      const double begin_s = std::max(prefixes[i].end_s, ready[layers - j] + cost.cpu_s_per_byte * prefixes[i].bytes);
      const double end_s = begin_s + cost(prefix.bytes - prefixes[i].bytes);
      if (is_better(end_s, prefixes[i].messages + 1, prefix))
        prefix = {prefix.bytes, end_s, prefixes[i].messages + 1, i};
    }
  }
  Partition buckets;
  for (std::size_t j = layers; j > 0; j = prefixes[j].before)
    buckets.push_back({layers - j, layers - prefixes[j].before - 1});
  std::ranges::reverse(buckets);
  return buckets;
}

}  // namespace

extern constinit const Policy exact_dp{
    .name = "exact_dp",
    .summary = "The partition with the shortest step, for any cost, by dynamic programming",
    .source = "ours: replaces MG-WFBP Theorem 1, which is false",
    .partition = partition,
    .needs = Needs::times,
};

}  // namespace syncopate::schedule::policy
