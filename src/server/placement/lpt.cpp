// LPT: whole tables, the largest first, each to the server with the least load so far.
// Thesis, Algorithm 2; Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969, theorem 3:
// the fullest server has at most 4/3 - 1/(3m) of what it would have in the best placement of whole tables.
//
// Law: max(p_1, S/m + (1 - 1/m) p_{m+1}), with S bytes in all and p_k the k-th largest table. Proof: if the fullest
// server has more than one table, its last one was placed when all servers had one, so it is at most p_{m+1}, and the
// server then had the least load: at most (S - p)/m. A table above S/m makes a server fuller than S/m, and no placement
// of whole tables avoids it (fc6 is three quarters of VGG-16): use `uniform` for such models.
#include <algorithm>
#include <numeric>

#include "server/placement.hpp"

namespace syncopate::server::placement {

namespace {

/// Tables from the largest to the smallest; equal ones in their original order.
std::vector<std::size_t> falling(std::span<const std::size_t> bytes) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t table) { return bytes[table]; });
  return order;
}

std::vector<Shard> place(const Demand& demand) {
  std::vector<std::size_t> loads(demand.servers);
  std::vector<Shard> shards;
  for (const std::size_t table : falling(demand.table_bytes)) {
    const std::size_t bytes = demand.table_bytes[table];
    if (bytes == 0) break;
    const auto least = std::ranges::min_element(loads);
    *least += bytes;
    shards.push_back({table, 0, bytes, static_cast<std::size_t>(least - loads.begin())});
  }
  std::ranges::sort(shards, {}, &Shard::table);
  return shards;
}

double most_bytes(const Demand& demand) {
  const std::vector<std::size_t> order = falling(demand.table_bytes);
  const auto servers = static_cast<double>(demand.servers);
  const auto size = [&](std::size_t at) {
    return at < order.size() ? static_cast<double>(demand.table_bytes[order[at]]) : 0.0;
  };
  const double total = std::accumulate(demand.table_bytes.begin(), demand.table_bytes.end(), 0.0);
  return std::max(size(0), total / servers + (1 - 1 / servers) * size(demand.servers));
}

}  // namespace

extern constinit const Placement lpt{
    .name = "lpt",
    .summary = "Whole tables, largest first, to the server with the least: at most 4/3 - 1/(3m) of the optimum",
    .source = "Modular parameter server thesis, Algorithm 2; Graham 1969",
    .place = place,
    .most_bytes = most_bytes,
};

}  // namespace syncopate::server::placement
