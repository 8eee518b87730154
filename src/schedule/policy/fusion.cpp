// Fusion: a bucket closes before it would exceed a size; layer times and network are not considered.
// Sergeev & Del Balso, "Horovod", arXiv:1802.05799, section 4 (tensor fusion); Li et al., "PyTorch Distributed",
// VLDB 2020, section 3.2.3 (gradient bucketing).
//
//   backward   |L6|L5|L4|L3|L2|L1|
//   exchange         | 6 5 |  | 4 3 |  | 2 1 |
#include <cmath>

#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

// Alpha / beta: the bytes that a link transfers in one start-up time; 25 us at 3 Gbit/s.
constexpr double kStartupBytes = 10e3;

// The size if none is given. With buckets of M bytes of S, the exposed time is S / M start-up times a plus the last
// bucket's b M. It is least for M = sqrt(S a / b), and a ring's a / b is N alpha / beta. The size depends only on the
// model and the ranks, so that runs are reproducible bit for bit.
std::size_t usual_bytes(const Timeline& timeline, int ranks) {
  const auto bytes = static_cast<double>(bytes_of(timeline, {0, timeline.layers.size() - 1}));
  return static_cast<std::size_t>(std::sqrt(bytes * ranks * kStartupBytes));
}

// There are two rules. Horovod's: a layer that would lift the bucket above its size begins the next bucket, so only a
// single larger layer makes a larger bucket. PyTorch's (fuses_past): the layer that reaches the size still joins.
Partition partition(const Timeline& timeline, const PolicyOptions& options) {
  Partition buckets;
  std::size_t last = timeline.layers.size() - 1, bytes = 0;
  const std::size_t usual = options.fusion_bytes > 0 ? options.fusion_bytes : usual_bytes(timeline, options.ranks);
  std::size_t limit = options.first_fusion_bytes > 0 ? options.first_fusion_bytes : usual;
  for (std::size_t layer = timeline.layers.size(); layer-- > 0;) {
    const std::size_t size = timeline.layers[layer].bytes;
    const bool is_full = options.fuses_past ? bytes >= limit : bytes + size > limit;
    if (layer != last && is_full) {
      buckets.push_back({layer + 1, last});
      last = layer;
      bytes = 0;
      limit = usual;
    }
    bytes += size;
  }
  buckets.push_back({0, last});
  return buckets;
}

}  // namespace

extern constinit const Policy fusion{
    .name = "fusion",
    .summary = "Buckets of at most one size, filled in the order of the backward pass",
    .source = "Sergeev & Del Balso 2018 (Horovod); Li et al. 2020 (PyTorch DDP)",
    .partition = partition,
};

}  // namespace syncopate::schedule::policy
