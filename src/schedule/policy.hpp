// Policy: one entry of the shelf policy/: it decides which gradients share a bucket.
#pragma once

#include <span>
#include <string_view>

#include "schedule/timeline.hpp"

namespace syncopate::schedule {

struct PolicyOptions {
  std::size_t fusion_bytes = 4 << 20;
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// The partition of `timeline` (at least one layer), in the order of exchange.
  Partition (*partition)(const Timeline& timeline, const PolicyOptions& options);
};

/// Every policy, by name (generated from the folder policy/).
[[nodiscard]] std::span<const Policy* const> policies();
[[nodiscard]] const Policy& policy_named(std::string_view name);  ///< throws Misuse that lists them

/// Cuts buckets where the type changes: gradients of different types lie in different arenas.
[[nodiscard]] Partition split_by_type(const Partition& partition, const Timeline& timeline);
/// Why `partition` does not cover `layers` layers once each, last layer first; empty if it does.
[[nodiscard]] std::string illegal(const Partition& partition, std::size_t layers);

}  // namespace syncopate::schedule
