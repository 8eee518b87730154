// Template of a placement: neighbouring tables share a server; each server keeps about T / m whole tables.
// Replace this line by the source: authors, title, venue, equation numbers.
//
//   tables    0 1 2 3 4 5 6        server 0: 0 1 2   1: 3 4   2: 5 6
#include "server/placement.hpp"

#include <algorithm>

namespace syncopate::server::placement {

namespace {

/// Shards by table, then by range. A table without bytes is placed nowhere.
std::vector<Shard> place(const Demand& demand) {
  std::vector<Shard> shards;
  const std::size_t tables = demand.table_bytes.size();
  for (std::size_t table = 0; table < tables; ++table)
    if (const std::size_t bytes = demand.table_bytes[table]; bytes > 0)
      shards.push_back({table, 0, bytes, table * demand.servers / tables});
  return shards;
}

double most_bytes(const Demand& demand) {
  if (demand.table_bytes.empty()) return 0;
  const std::size_t tables = (demand.table_bytes.size() + demand.servers - 1) / demand.servers;
  return static_cast<double>(tables) * static_cast<double>(*std::ranges::max_element(demand.table_bytes));
}

}  // namespace

extern constinit const Placement neighbours{
    .name = "neighbours",
    .summary = "Neighbouring whole tables share a server",
    .source = "the template of docs/extending.md",
    .place = place,
    .most_bytes = most_bytes,
};

}  // namespace syncopate::server::placement
