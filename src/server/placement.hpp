// Placement: an entry of the shelf placement/: assigns the parts of tables to servers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::server {

/// The tables to place, in the order of their creation: the forward order of their layers.
struct Demand {
  std::span<const std::size_t> table_bytes;  ///< each a multiple of grain_bytes; a table of 0 bytes gets no shard
  std::size_t servers = 1;                   ///< at least 1
  std::size_t grain_bytes = 4;               ///< a table is divided only at multiples of it; at least 1
};

/// The bytes [begin, end) of a table, which one server keeps.
struct Shard {
  std::size_t table = 0, begin = 0, end = 0;
  std::size_t server = 0;
  friend bool operator==(const Shard&, const Shard&) = default;
};

struct Placement {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// Shards by table, then by range: each byte in exactly one, none empty. `demand` is allowed (see
  /// `shards_of`).
  std::vector<Shard> (*place)(const Demand& demand);
  /// The law: no server keeps more bytes than this, whatever the tables.
  double (*most_bytes)(const Demand& demand);
};

/// Every placement, by name (generated from the folder placement/).
[[nodiscard]] std::span<const Placement* const> placements();
[[nodiscard]] const Placement& placement_named(std::string_view name);  ///< throws Misuse that lists them

/// The shards of `demand` under `placement`. Pure: equal on every process. Throws Misuse if there is no server, or a
/// table is not a multiple of the grain.
[[nodiscard]] std::vector<Shard> shards_of(const Placement& placement, const Demand& demand);

/// The bytes that each server keeps.
[[nodiscard]] std::vector<std::size_t> loads_of(std::span<const Shard> shards, std::size_t servers);
/// Standard deviation over mean of the loads of all servers, 0 without load (thesis, figure 5.3).
[[nodiscard]] double variation_of(std::span<const std::size_t> loads);
/// Why `shards` violate `demand`; empty if they fit.
[[nodiscard]] std::string misplaced(std::span<const Shard> shards, const Demand& demand);

}  // namespace syncopate::server
