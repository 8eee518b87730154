// Placements by name, the loads that result, and the law that every placement keeps.
#include "server/placement.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/named.hpp"

namespace syncopate {

std::vector<const server::Placement*> Catalogue::placements() const {
  return base::joined(server::placements(), placements_);
}

Catalogue Catalogue::with(const server::Placement& mine) const {
  Catalogue more = *this;
  base::add_entry<server::Placement>("placement", more.placements_, mine, placements());
  base::require(mine.place != nullptr && mine.most_bytes != nullptr,
                "placement {} lacks a function; allowed: with place and most_bytes", mine.name);
  return more;
}

}  // namespace syncopate

namespace syncopate::server {

namespace {

std::string misplaced_within(const Shard& shard, const Demand& demand) {
  const auto& [table, begin, end, server] = shard;
  if (begin >= end || end > demand.table_bytes[table])
    return fmt::format("table {} has no range [{}, {})", table, begin, end);
  if (begin % demand.grain_bytes != 0)
    return fmt::format("table {} is cut at byte {}, which is not a multiple of {}", table, begin, demand.grain_bytes);
  if (server >= demand.servers) return fmt::format("there is no server {}; servers: {}", server, demand.servers);
  return {};
}

}  // namespace

const Placement& placement_named(std::string_view name, const Catalogue& catalogue) {
  return base::entry_named<Placement>("placement", name, catalogue.placements());
}

std::vector<Shard> shards_of(const Placement& placement, const Demand& demand) {
  base::require(demand.servers >= 1, "placement {} has {} servers; allowed: at least 1", placement.name,
                demand.servers);
  base::require(demand.grain_bytes >= 1, "placement {} has a grain of 0 bytes; allowed: at least 1", placement.name);
  for (std::size_t table = 0; table < demand.table_bytes.size(); ++table)
    base::require(demand.table_bytes[table] % demand.grain_bytes == 0,
                  "table {} has {} bytes; allowed: multiples of the grain of {} bytes", table,
                  demand.table_bytes[table], demand.grain_bytes);
  std::vector<Shard> shards = placement.place(demand);
  const std::string flaw = misplaced(shards, demand);
  base::require(flaw.empty(), "placement {}: {}; allowed: every byte in one shard, by table and range", placement.name,
                flaw);
  return shards;
}

std::vector<std::size_t> loads_of(std::span<const Shard> shards, std::size_t servers) {
  std::vector<std::size_t> loads(servers);
  for (const Shard& shard : shards) loads.at(shard.server) += shard.end - shard.begin;
  return loads;
}

double variation_of(std::span<const std::size_t> loads) {
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(loads.size());
  if (!(mean > 0)) return 0;
  double squares = 0;
  for (const std::size_t load : loads)
    squares += (static_cast<double>(load) - mean) * (static_cast<double>(load) - mean);
  return std::sqrt(squares / static_cast<double>(loads.size())) / mean;
}

std::string misplaced(std::span<const Shard> shards, const Demand& demand) {
  std::size_t next = 0;
  for (std::size_t table = 0; table < demand.table_bytes.size(); ++table)
    for (std::size_t covered = 0; covered < demand.table_bytes[table]; covered = shards[next++].end) {
      if (next == shards.size() || shards[next].table != table || shards[next].begin != covered)
        return fmt::format("shard {} does not begin at byte {} of table {}", next, covered, table);
      if (auto why = misplaced_within(shards[next], demand); !why.empty()) return why;
    }
  return next == shards.size() ? std::string{} : fmt::format("shard {} does not belong to a table", next);
}

}  // namespace syncopate::server
