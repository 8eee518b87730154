// Fusion: a bucket closes before it would exceed its size, whatever layers take to compute and the network to move.
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

// Alpha over beta, the bytes that pass in a start-up time: 25 us at 3 Gbit/s.
constexpr double kStartupBytes = 10e3;

// Where no size is asked for. Buckets of M of S bytes leave S / M start-up times a and one last bucket's b M in the
// open, which is least for M = sqrt(S a / b), and a ring's a / b is N alpha / beta. It depends on the model and the
// ranks alone, so that runs can be repeated to the bit.
std::size_t usual_bytes(const Timeline& timeline, int ranks) {
  const auto bytes = static_cast<double>(bytes_of(timeline, {0, timeline.layers.size() - 1}));
  return static_cast<std::size_t>(std::sqrt(bytes * ranks * kStartupBytes));
}

// Two rules are in use. Horovod's: a layer that would lift the bucket above its size begins the next one, so that only
// a layer larger than that makes a larger bucket. PyTorch's (fuses_past): the layer that lifts it above still joins.
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
