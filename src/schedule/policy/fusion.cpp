// Fusion: a bucket closes before it would exceed fusion_bytes, whatever the network and the model.
// Sergeev & Del Balso, "Horovod", arXiv:1802.05799, section 4 (tensor fusion); Li et al., "PyTorch Distributed",
// VLDB 2020, section 3.2.3 (gradient bucketing).
//
//   backward   |L6|L5|L4|L3|L2|L1|
//   exchange         | 6 5 |  | 4 3 |  | 2 1 |
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

// Two rules are in use. Horovod's: a layer that would lift the bucket above its size begins the next one, so that only
// a layer larger than that makes a larger bucket. PyTorch's (fuses_past): the layer that lifts it above still joins.
Partition partition(const Timeline& timeline, const PolicyOptions& options) {
  Partition buckets;
  std::size_t last = timeline.layers.size() - 1, bytes = 0;
  std::size_t limit = options.first_fusion_bytes > 0 ? options.first_fusion_bytes : options.fusion_bytes;
  for (std::size_t layer = timeline.layers.size(); layer-- > 0;) {
    const std::size_t size = timeline.layers[layer].bytes;
    const bool is_full = options.fuses_past ? bytes >= limit : bytes + size > limit;
    if (layer != last && is_full) {
      buckets.push_back({layer + 1, last});
      last = layer;
      bytes = 0;
      limit = options.fusion_bytes;
    }
    bytes += size;
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
