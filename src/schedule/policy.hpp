// Policies by name, and the law of every partition.
#pragma once

#include <span>
#include <string_view>

#include "schedule/cost.hpp"
#include "syncopate/catalogue.hpp"

namespace syncopate::schedule {

/// The library's policies, by name (generated from the folder policy/).
[[nodiscard]] std::span<const Policy* const> policies();
[[nodiscard]] const Policy& policy_named(std::string_view name, const Catalogue& catalogue = {});  ///< throws Misuse

/// The partition of `timeline` by the policy. Throws Misuse if it is not legal.
[[nodiscard]] Partition partition_by(const Policy& policy, const Timeline& timeline, const PolicyOptions& options);
/// Why `partition` is not legal: it must cover `layers` layers once each, last layer first. Empty if it is legal.
[[nodiscard]] std::string illegal(const Partition& partition, std::size_t layers);

}  // namespace syncopate::schedule
