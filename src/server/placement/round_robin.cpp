// Round-robin: whole tables, each to the server after the previous one; sizes are not considered.
// Thesis, section 2.3.1 and code 4.1: the default of TensorFlow's parameter servers.
//
//   tables    0 1 2 3 4 5 6        server 0: 0 4   1: 1 5   2: 2 6   3: 3
//
// Law: with T tables, a server keeps at most ceil(T / m) of them, each at most the largest. In the worst order of
// creation one server has all bytes, m times the optimum. Alternating weights and biases on an even number of servers
// come close to it: half of the servers keep only biases.
#include <algorithm>

#include "server/placement.hpp"

namespace syncopate::server::placement {

namespace {

std::vector<Shard> place(const Demand& demand) {
  std::vector<Shard> shards;
  for (std::size_t table = 0; table < demand.table_bytes.size(); ++table)
    if (const std::size_t bytes = demand.table_bytes[table]; bytes > 0)
      shards.push_back({table, 0, bytes, table % demand.servers});
  return shards;
}

double most_bytes(const Demand& demand) {
  if (demand.table_bytes.empty()) return 0;
  const std::size_t tables = (demand.table_bytes.size() + demand.servers - 1) / demand.servers;
  return static_cast<double>(tables) * static_cast<double>(*std::ranges::max_element(demand.table_bytes));
}

}  // namespace

extern constinit const Placement round_robin{
    .name = "round_robin",
    .summary = "Whole tables, one server after the other, whatever their sizes",
    .source = "Modular parameter server thesis, section 2.3.1 (TensorFlow's default)",
    .place = place,
    .most_bytes = most_bytes,
};

}  // namespace syncopate::server::placement
