// Policies by name, and the laws of every partition.
#include "schedule/policy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/named.hpp"

namespace syncopate::schedule {

const Policy& policy_named(std::string_view name) { return base::entry_named("policy", name, policies()); }

const Cost& required_cost(std::string_view policy, const Timeline& timeline, const PolicyOptions& options) {
  const bool timed = std::ranges::any_of(timeline.layers, [](const Layer& layer) { return layer.backward_s > 0; });
  base::require(timed && options.cost.has_value(),
                "policy {} weighs measured times: it needs {}; allowed without them: fusion, single, wfbp", policy,
                timed ? "the cost of an exchange (a cluster file)" : "a backward time per layer (a profile)");
  return *options.cost;
}

std::string illegal(const Partition& partition, std::size_t layers) {
  std::size_t expected = layers;
  for (const Bucket& bucket : partition) {
    if (bucket.first > bucket.last || bucket.last + 1 != expected)
      return fmt::format("bucket [{}, {}] does not end at layer {}", bucket.first, bucket.last, expected - 1);
    expected = bucket.first;
  }
  return expected == 0 ? std::string{} : fmt::format("layers 0 to {} are in no bucket", expected - 1);
}

}  // namespace syncopate::schedule
