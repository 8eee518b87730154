// Placements by name, the shards of a demand, and the loads that result.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/catalogue.hpp"
#include "syncopate/placement.hpp"

namespace syncopate::server {

/// The library's placements, by name (generated from the folder placement/).
[[nodiscard]] std::span<const Placement* const> placements();
[[nodiscard]] const Placement& placement_named(std::string_view name, const Catalogue& catalogue = {});  ///< or Misuse

/// The shards of `demand` under `placement`. Pure: equal on every process. Throws Misuse if there is no server, a table
/// is not a multiple of the grain, or the placement breaks its laws.
[[nodiscard]] std::vector<Shard> shards_of(const Placement& placement, const Demand& demand);

/// The bytes that each server keeps.
[[nodiscard]] std::vector<std::size_t> loads_of(std::span<const Shard> shards, std::size_t servers);
/// Standard deviation over mean of the loads of all servers, 0 without load (thesis, figure 5.3).
[[nodiscard]] double variation_of(std::span<const std::size_t> loads);
/// Why `shards` violate `demand`; empty if they fit.
[[nodiscard]] std::string misplaced(std::span<const Shard> shards, const Demand& demand);

}  // namespace syncopate::server
