// Simulated cost: tables of the times of collectives, from replaying their plans segment by segment.
#include <algorithm>

#include "base/require.hpp"
#include "simulate/costs/cluster_cost.hpp"
#include "simulate/exchange.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {

namespace {

constexpr double kStep = 1.25;  // ratio of a table's sizes: interpolation is off by less than 2 % (a test)

/// Ascending sizes in whole floats, except the last. Steps too small to add a float give the same size once.
std::vector<std::uint64_t> sizes_up_to(std::uint64_t bytes, std::uint64_t least) {
  std::vector<std::uint64_t> sizes;
  for (double size = static_cast<double>(least); size < static_cast<double>(bytes); size *= kStep) {
    const std::uint64_t whole = static_cast<std::uint64_t>(size) / 4 * 4;
    if (sizes.empty() || whole > sizes.back()) sizes.push_back(whole);
  }
  sizes.push_back(std::max(bytes, least));
  return sizes;
}

}  // namespace

std::vector<MeasuredCost> simulate_costs(const Cluster& cluster, std::uint64_t bytes) {
  base::require(cluster.inter.has_value(), "costs are simulated on links, but the cluster has none; add \"inter\"");
  const simulate::Network network{.ranks = cluster.ranks,
                                  .ranks_per_host = cluster.ranks_per_host,
                                  .inter = *cluster.inter,
                                  .intra = cluster.intra.value_or(*cluster.inter),
                                  .slowness = {}};
  simulate::Exchanger exchanger(network, simulate::Exchanger::Messages::segments);
  const std::vector<double> together(static_cast<std::size_t>(cluster.ranks), 0.0);
  std::vector<MeasuredCost> costs;
  for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather}) {
    const bool is_whole = collective == Collective::allreduce;
    const std::string algorithm =
        is_whole ? cluster.algorithm : simulate::costs::algorithm_of_half(cluster.algorithm, collective);
    MeasuredCost cost{.collective = collective, .algorithm = algorithm == "auto" ? "" : algorithm};
    for (const std::uint64_t size : sizes_up_to(bytes, 4 * static_cast<std::uint64_t>(cluster.ranks))) {
      const auto ends = exchanger.run({collective, algorithm, size}, together);
      cost.table.emplace_back(static_cast<double>(size), *std::ranges::max_element(ends));
    }
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace syncopate
