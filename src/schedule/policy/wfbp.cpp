// Wait-free backpropagation: every gradient travels by itself, as soon as it is ready.
// Zhang et al., "Poseidon", USENIX ATC 2017; MG-WFBP section III: the merged set M is empty.
//
//   backward   |L4|L3|L2|L1|
//   exchange      |4 |3 |2 |1 |        one message per layer: L times the startup cost a
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

Partition partition(const Timeline& timeline, const PolicyOptions& /*options*/) {
  Partition buckets;
  for (std::size_t layer = timeline.layers.size(); layer-- > 0;) buckets.push_back({layer, layer});
  return buckets;
}

}  // namespace

extern constinit const Policy wfbp{
    .name = "wfbp",
    .summary = "Every gradient by itself as soon as it is ready",
    .source = "Zhang et al. 2017 (Poseidon); MG-WFBP section III",
    .partition = partition,
};

}  // namespace syncopate::schedule::policy
