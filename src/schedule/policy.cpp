// Policies by name, and the laws of every partition.
#include "schedule/policy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/named.hpp"

namespace syncopate {

std::vector<const schedule::Policy*> Catalogue::policies() const {
  return base::joined(schedule::policies(), policies_);
}

Catalogue Catalogue::with(const schedule::Policy& mine) const {
  Catalogue more = *this;
  base::add_entry<schedule::Policy>("policy", more.policies_, mine, policies());
  base::require(mine.partition != nullptr, "policy {} has no partition; allowed: with one", mine.name);
  return more;
}

}  // namespace syncopate

namespace syncopate::schedule {

const Policy& policy_named(std::string_view name, const Catalogue& catalogue) {
  return base::entry_named<Policy>("policy", name, catalogue.policies());
}

Partition partition_by(const Policy& policy, const Timeline& timeline, const PolicyOptions& options) {
  Partition partition = policy.partition(timeline, options);
  const std::string flaw = illegal(partition, timeline.layers.size());
  base::require(flaw.empty(), "policy {}: {}; allowed: every layer in one bucket, the last layer first", policy.name,
                flaw);
  return partition;
}

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
