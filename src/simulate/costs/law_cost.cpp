// Law cost: adds up legs, each by the cost of its collective among the ranks of its scope.
#include "simulate/costs/law_cost.hpp"

#include <algorithm>

#include "base/require.hpp"
#include "simulate/costs/collective_cost.hpp"

namespace syncopate::simulate::costs {

namespace {

/// The ranks of one set of a scope, and the link between them.
Cluster set_of(const Cluster& cluster, Scope scope) {
  Cluster set = cluster;
  set.costs.clear();
  const int per_host = std::min(cluster.ranks, cluster.ranks_per_host);
  if (scope == Scope::host) set.ranks = per_host;
  if (scope == Scope::across) {
    set.ranks = (cluster.ranks + per_host - 1) / per_host;
    set.ranks_per_host = 1;
  }
  return set;
}

/// The cost of one leg; 0 on a single rank.
schedule::Cost cost_of_leg(const Cluster& cluster, const ExchangeLeg& leg, std::uint64_t bytes) {
  const bool is_whole = leg.scope == Scope::group && leg.collective == Collective::allreduce && leg.messages == 0;
  if (is_whole) return cost_of_cluster(cluster, bytes);
  const Cluster set = set_of(cluster, leg.scope);
  if (set.ranks == 1) return {};
  const bool within = set.ranks <= set.ranks_per_host;
  const std::optional<LinkCost>& link = within && cluster.intra ? cluster.intra : cluster.inter;
  base::require(link.has_value(), "the cluster has no link for a leg of the exchange ({} over scope {}); add \"{}\"",
                name_of(leg.collective), name_of(leg.scope), within ? "intra" : "inter");
  if (leg.messages > 0)
    return schedule::Cost::affine(leg.messages * link->alpha_s, leg.messages * link->beta_s_per_byte);
  return cost_of_collective({.collective = leg.collective, .ranks = set.ranks, .bytes = bytes}, *link);
}

}  // namespace

schedule::Cost cost_of_law(const Cluster& cluster, const ExchangeLaw& law, std::uint64_t bytes, const Change& change) {
  if (law.legs.empty() && law.coding_s_per_byte == 0) return cost_of_cluster(cluster, bytes, change);
  const auto most = static_cast<double>(std::max<std::uint64_t>(bytes, 1));
  std::vector<schedule::Cost> costs;
  for (const ExchangeLeg& leg : law.legs)
    costs.push_back(
        changed(cost_of_leg(cluster, leg, static_cast<std::uint64_t>(leg.share * most + leg.fixed_bytes) + 1), change));
  const auto total = [&](double size) {
    double seconds = law.coding_s_per_byte * size;
    for (std::size_t i = 0; i < costs.size(); ++i)
      seconds += costs[i](law.legs[i].share * size + law.legs[i].fixed_bytes);
    return seconds;
  };
  schedule::Cost cost = schedule::cost_model_named("law").cost({.law = total, .largest_bytes = most});
  double travelling = 0;  // exchanged bytes per byte of gradients
  for (const ExchangeLeg& leg : law.legs) travelling += leg.share * std::max(leg.messages, 1);
  cost.cpu_s_per_byte = cluster.cpu_s_per_byte * std::min(1.0, travelling) + law.coding_s_per_byte;
  return cost;
}

}  // namespace syncopate::simulate::costs

namespace syncopate {

namespace {

/// The pieces of a cost as rows; an extra row at the end gives the slope after the start of the last piece.
std::vector<std::pair<double, double>> table_of(const schedule::Cost& cost, std::uint64_t bytes) {
  std::vector<std::pair<double, double>> table;
  for (const schedule::Piece& piece : cost.pieces()) table.emplace_back(piece.begin_bytes, piece.seconds);
  const schedule::Piece& last = cost.pieces().back();
  const double beyond = std::max(2 * last.begin_bytes, static_cast<double>(std::max<std::uint64_t>(bytes, 1)));
  table.emplace_back(beyond, last.seconds + (beyond - last.begin_bytes) * last.seconds_per_byte);
  return table;
}

}  // namespace

Cluster with_exchange(const Cluster& cluster, const ExchangeLaw& law, std::uint64_t bytes) {
  const schedule::Cost cost = simulate::costs::cost_of_law(cluster, law, bytes);
  Cluster made = cluster;
  made.algorithm = "auto";
  made.cpu_s_per_byte = cost.cpu_s_per_byte;
  made.costs = {MeasuredCost{.collective = Collective::allreduce, .algorithm = {}, .table = table_of(cost, bytes)}};
  return made;
}

ExchangeCost exchange_cost(const Cluster& cluster, int ranks, std::uint64_t bytes, const ExchangeLaw& law) {
  Cluster here = cluster;
  if (ranks != cluster.ranks) {
    here.ranks = ranks;
    here.costs.clear();
    if (!here.inter)
      throw Misuse(
          fmt::format("the cluster's costs were measured on {} ranks, and it has no links to predict those of {}",
                      cluster.ranks, ranks));
  }
  const schedule::Cost cost = simulate::costs::cost_of_law(here, law, bytes);
  return {.table = table_of(cost, bytes), .cpu_s_per_byte = cost.cpu_s_per_byte};
}

}  // namespace syncopate
