// Your own placement: server 0, which also runs a worker, gets half as much of every table as each other server.
//
//   3 servers, a table of 10 grains:   0: 2   1: 4   2: 4
#include "syncopate/placement.hpp"

#include "laws.hpp"
#include "workers.hpp"

using namespace syncopate;
using namespace syncopate::server;

/// Every process computes the same shards, by table, then by range.
std::vector<Shard> place(const Demand& demand) {
  std::vector<Shard> shards;
  const std::size_t halves = 2 * demand.servers - 1;
  for (std::size_t table = 0; table < demand.table_bytes.size(); ++table) {
    const std::size_t grains = demand.table_bytes[table] / demand.grain_bytes;
    for (std::size_t server = 0, begin = 0; server < demand.servers; ++server) {
      const std::size_t end = grains * (2 * server + 1) / halves * demand.grain_bytes;
      if (end > begin) shards.push_back({table, begin, end, server});
      begin = end;
    }
  }
  return shards;
}

/// Two shares of all bytes, and up to a grain of every table by rounding.
double most_bytes(const Demand& demand) {
  double bytes = 0;
  for (const std::size_t table : demand.table_bytes) bytes += static_cast<double>(table);
  const std::size_t rounding = demand.table_bytes.size() * demand.grain_bytes;
  return 2 * bytes / (2 * static_cast<double>(demand.servers) - 1) + static_cast<double>(rounding);
}

constexpr Placement kSparing = {.name = "sparing", .place = place, .most_bytes = most_bytes};

int main() {
  if (!holds(check_placement(kSparing))) return 1;
  return train_on_workers({.catalogue = Catalogue::standard().with(kSparing), .placement = "sparing"});
}
