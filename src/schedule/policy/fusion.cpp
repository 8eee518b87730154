// Fusion: a bucket closes before it would exceed fusion_bytes, whatever the network and the model.
// Sergeev & Del Balso, "Horovod", arXiv:1802.05799, section 4 (tensor fusion); Li et al., "PyTorch Distributed",
// VLDB 2020, section 3.2.3 (gradient bucketing).
//
//   backward   |L6|L5|L4|L3|L2|L1|
//   exchange         | 6 5 |  | 4 3 |  | 2 1 |
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

// A layer that would lift the bucket above fusion_bytes begins the next one, so that only a layer larger than
// fusion_bytes makes a larger bucket.
Partition partition(const Timeline& timeline, const PolicyOptions& options) {
  Partition buckets;
  std::size_t last = timeline.layers.size() - 1, bytes = 0;
  for (std::size_t layer = timeline.layers.size(); layer-- > 0;) {
    if (layer != last && bytes + timeline.layers[layer].bytes > options.fusion_bytes) {
      buckets.push_back({layer + 1, last});
      last = layer;
      bytes = 0;
    }
    bytes += timeline.layers[layer].bytes;
  }
  buckets.push_back({0, last});
  return buckets;
}

}  // namespace

extern constinit const Policy fusion{
    .name = "fusion",
    .summary = "Buckets of at most fusion_bytes, filled in the order of the backward pass",
    .source = "Sergeev & Del Balso 2018 (Horovod); Li et al. 2020 (PyTorch DDP)",
    .partition = partition,
};

}  // namespace syncopate::schedule::policy
