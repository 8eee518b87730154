// Policy: an entry of the shelf policy/: it decides which gradients share a bucket.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "schedule/cost.hpp"
#include "schedule/timeline.hpp"

namespace syncopate::schedule {

struct PolicyOptions {
  std::size_t fusion_bytes = 0;  ///< size of a bucket; 0: from model and ranks (policy/fusion)
  int ranks = 1;
  std::size_t first_fusion_bytes = 0;  ///< size of the first bucket; 0: equal to the others
  bool fuses_past = false;             ///< a bucket closes after the layer that reaches its size, not before it
  std::optional<Cost> cost;            ///< cost of one exchange, for policies that weigh times
};

/// The inputs that a policy needs.
enum class Needs : std::uint8_t {
  sizes,   ///< sizes of the layers
  times,   ///< sizes, ready times of gradients, and the cost of an exchange
  events,  ///< it decides during the step; its `partition` predicts the buckets and needs times
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// The partition of `timeline` (at least one layer), in the order of exchange. Throws Misuse if it needs times, and
  /// `timeline` or `options` has none.
  Partition (*partition)(const Timeline& timeline, const PolicyOptions& options);
  Needs needs = Needs::sizes;
};

/// Every policy, by name (generated from the folder policy/).
[[nodiscard]] std::span<const Policy* const> policies();
[[nodiscard]] const Policy& policy_named(std::string_view name);  ///< throws Misuse that lists them

/// The cost in `options`; throws Misuse naming the policy if there is none, or if `timeline` has no backward times.
[[nodiscard]] const Cost& required_cost(std::string_view policy, const Timeline& timeline,
                                        const PolicyOptions& options);
/// Why `partition` is not legal: it must cover `layers` layers once each, last layer first. Empty if it is legal.
[[nodiscard]] std::string illegal(const Partition& partition, std::size_t layers);

}  // namespace syncopate::schedule
