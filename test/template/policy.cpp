// Template of a merge policy: two neighbouring gradients share a bucket.
// Replace this line by the source: authors, title, venue, equation numbers.
//
//   backward   |L5|L4|L3|L2|L1|
//   exchange         |5+4  |3+2  |1  |
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

/// Buckets in the order of exchange: the last layer's gradient is ready first.
Partition partition(const Timeline& timeline, const PolicyOptions& /*options*/) {
  Partition buckets;
  for (std::size_t end = timeline.layers.size(); end > 0;) {
    const std::size_t first = end >= 2 ? end - 2 : 0;
    buckets.push_back({first, end - 1});
    end = first;
  }
  return buckets;
}

}  // namespace

extern constinit const Policy pairs{
    .name = "pairs",
    .summary = "Two neighbouring gradients share a bucket",
    .source = "the template of docs/extending.md",
    .partition = partition,
};

}  // namespace syncopate::schedule::policy
