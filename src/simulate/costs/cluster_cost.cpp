// Cluster cost: selects a cluster's costs and scales them.
#include "simulate/costs/cluster_cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "collective/algorithm.hpp"
#include "simulate/costs/collective_cost.hpp"
#include "syncopate/error.hpp"

namespace syncopate::simulate::costs {

namespace {

schedule::Cost cost_of(const MeasuredCost& measured) {
  if (measured.table.empty()) return schedule::Cost::affine(measured.a_s, measured.b_s_per_byte);
  schedule::CostInputs inputs;
  for (const auto& [bytes, seconds] : measured.table) inputs.points.push_back({bytes, seconds});
  return schedule::cost_model_named("table").cost(inputs);
}

schedule::Cost least_of(const std::vector<schedule::Cost>& costs, double largest_bytes) {
  if (costs.size() == 1) return costs.front();
  const auto least = [&](double bytes) {
    double seconds = costs.front()(bytes);
    for (const schedule::Cost& cost : costs) seconds = std::min(seconds, cost(bytes));
    return seconds;
  };
  return schedule::cost_model_named("law").cost({.law = least, .largest_bytes = largest_bytes});
}

std::vector<schedule::Cost> measured_costs(const Cluster& cluster, Collective collective) {
  const bool is_whole = collective == Collective::allreduce;
  const std::string algorithm = is_whole ? cluster.algorithm : algorithm_of_half(cluster.algorithm, collective);
  std::vector<schedule::Cost> named, whichever;
  for (const MeasuredCost& cost : cluster.costs) {
    if (cost.collective != collective) continue;
    if (algorithm != "auto" && cost.algorithm != algorithm) continue;
    (cost.algorithm.empty() ? whichever : named).push_back(cost_of(cost));
  }
  return whichever.empty() ? named : whichever;
}

[[noreturn]] void refuse(const Cluster& cluster) {
  std::vector<std::string> known;
  for (const MeasuredCost& cost : cluster.costs)
    if (cost.collective == Collective::allreduce) known.push_back(cost.algorithm.empty() ? "auto" : cost.algorithm);
  throw Misuse(fmt::format(
      "the cluster has neither links nor a cost of an all-reduce by {}; {}", cluster.algorithm,
      known.empty() ? std::string("add \"links\", or measure a cluster file with `syncopate fit`")
                    : fmt::format("allowed: {}, or any algorithm once it has \"links\"", fmt::join(known, ", "))));
}

const LinkCost& link_of(const Cluster& cluster) {
  const bool within = cluster.ranks <= cluster.ranks_per_host;
  if (within && cluster.intra) return *cluster.intra;
  if (cluster.inter) return *cluster.inter;
  if (!cluster.intra) refuse(cluster);
  throw Misuse(
      fmt::format("the cluster has only a link within hosts (intra), for {} ranks with {} per host; add \"inter\", or "
                  "use at most {} ranks",
                  cluster.ranks, cluster.ranks_per_host, cluster.ranks_per_host));
}

}  // namespace

schedule::Cost changed(const schedule::Cost& cost, const Change& change) {
  std::vector<schedule::Piece> pieces(cost.pieces().begin(), cost.pieces().end());
  const double a_s = cost.startup_s();
  for (schedule::Piece& piece : pieces) {
    piece.seconds = std::max(0.0, a_s * change.startup + (piece.seconds - a_s) * change.per_byte);
    piece.seconds_per_byte *= change.per_byte;
  }
  return schedule::Cost(std::move(pieces));
}

schedule::Cost cost_of_cluster(const Cluster& cluster, std::uint64_t bytes, const Change& change) {
  const std::vector<schedule::Cost> measured = measured_costs(cluster, Collective::allreduce);
  schedule::Cost cost;
  if (!measured.empty()) {
    cost = changed(least_of(measured, static_cast<double>(std::max<std::uint64_t>(bytes, 1))), change);
  } else {
    LinkCost link = link_of(cluster);
    link.alpha_s *= change.startup;
    link.beta_s_per_byte *= change.per_byte;
    cost = cost_of_collective({.algorithm = cluster.algorithm, .ranks = cluster.ranks, .bytes = bytes}, link);
  }
  cost.cpu_s_per_byte = cluster.cpu_s_per_byte;
  return cost;
}

double agreement_s(const Cluster& cluster, const Change& change) {
  if (cluster.ranks == 1) return 0;
  Cluster here = cluster;
  here.algorithm = "auto";
  here.cpu_s_per_byte = 0;
  return cost_of_cluster(here, kAgreedBytes, change)(kAgreedBytes);
}

bool is_measured(const Cluster& cluster) { return !measured_costs(cluster, Collective::allreduce).empty(); }

std::string algorithm_of_half(const std::string& algorithm, Collective half) {
  const auto entries = collective::algorithms();
  const auto found = std::ranges::find(entries, algorithm, [](auto* entry) { return entry->name; });
  return found != entries.end() && (*found)->offers(half) ? algorithm : "auto";
}

schedule::Cost cost_of_half(const Cluster& cluster, Collective half, std::uint64_t bytes) {
  const std::vector<schedule::Cost> measured = measured_costs(cluster, half);
  schedule::Cost cost;
  if (!measured.empty())
    cost = least_of(measured, static_cast<double>(std::max<std::uint64_t>(bytes, 1)));
  else if (is_measured(cluster))
    cost = changed(cost_of_cluster(cluster, bytes), {.startup = 0.5, .per_byte = 0.5});
  else
    cost = cost_of_collective({.collective = half,
                               .algorithm = algorithm_of_half(cluster.algorithm, half),
                               .ranks = cluster.ranks,
                               .bytes = bytes},
                              link_of(cluster));
  cost.cpu_s_per_byte = cluster.cpu_s_per_byte / 2;
  return cost;
}

}  // namespace syncopate::simulate::costs
