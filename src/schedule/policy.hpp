// Policy: one entry of the shelf policy/: it decides which gradients share a bucket.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "schedule/cost.hpp"
#include "schedule/timeline.hpp"

namespace syncopate::schedule {

struct PolicyOptions {
  std::size_t fusion_bytes = 0;  ///< 0: what suits the model and the ranks (policy/fusion)
  int ranks = 1;
  std::size_t first_fusion_bytes = 0;  ///< of the first bucket; 0: as of the others
  bool fuses_past = false;             ///< a bucket closes once it has reached its size, not before it would exceed it
  std::optional<Cost> cost;            ///< of one exchange, for policies that weigh it
};

/// What a policy must know before it can decide.
enum class Needs : std::uint8_t {
  sizes,   ///< of the layers
  times,   ///< also when gradients are ready, and what an exchange costs
  events,  ///< it decides while a step runs; `partition` predicts what it will do, and needs times
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// The partition of `timeline` (at least one layer), in the order of exchange. Throws Misuse where it needs times
  /// and `timeline` or `options` has none.
  Partition (*partition)(const Timeline& timeline, const PolicyOptions& options);
  Needs needs = Needs::sizes;
};

/// Every policy, by name (generated from the folder policy/).
[[nodiscard]] std::span<const Policy* const> policies();
[[nodiscard]] const Policy& policy_named(std::string_view name);  ///< throws Misuse that lists them

/// The cost in `options`; throws Misuse naming the policy where it is missing, or `timeline` has no backward times.
[[nodiscard]] const Cost& required_cost(std::string_view policy, const Timeline& timeline,
                                        const PolicyOptions& options);
/// Why `partition` does not cover `layers` layers once each, last layer first; empty if it does.
[[nodiscard]] std::string illegal(const Partition& partition, std::size_t layers);

}  // namespace syncopate::schedule
