// Uniform: every table is divided evenly over all servers, at multiples of the grain.
// Thesis, section 5 (uniform split); there the remainders of all tables fall to the same servers.
//
//   tables    |0 0 0|1 1 1|2 2 2|        grains of all tables are dealt in turn: if a table does not divide evenly,
//             |0 0 .|. . 1|1 1 .|        the next table's spare grains go to the servers that follow
//
// Law: loads differ by at most one grain, so the fullest server has at most S/m and one grain. The cost is messages: m
// for each table of at least m grains.
#include <numeric>

#include "server/placement.hpp"

namespace syncopate::server::placement {

namespace {

std::vector<Shard> place(const Demand& demand) {
  const std::size_t servers = demand.servers;
  std::vector<Shard> shards;
  std::size_t turn = 0;  // the next server to get a spare grain
  for (std::size_t table = 0; table < demand.table_bytes.size(); ++table) {
    const std::size_t grains = demand.table_bytes[table] / demand.grain_bytes;
    const std::size_t each = grains / servers, spare = grains % servers;
    std::size_t begin = 0;
    for (std::size_t server = 0; server < servers; ++server) {
      const bool has_spare = (server + servers - turn) % servers < spare;
      const std::size_t end = begin + (each + (has_spare ? 1 : 0)) * demand.grain_bytes;
      if (end > begin) shards.push_back({table, begin, end, server});
      begin = end;
    }
    turn = (turn + spare) % servers;
  }
  return shards;
}

double most_bytes(const Demand& demand) {
  const double total = std::accumulate(demand.table_bytes.begin(), demand.table_bytes.end(), 0.0);
  return total / static_cast<double>(demand.servers) + static_cast<double>(demand.grain_bytes);
}

}  // namespace

extern constinit const Placement uniform{
    .name = "uniform",
    .summary = "Every table evenly over all servers: equal loads, and a message for each server and table",
    .source = "Modular parameter server thesis, section 5 (uniform split)",
    .place = place,
    .most_bytes = most_bytes,
};

}  // namespace syncopate::server::placement
