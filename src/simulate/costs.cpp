// Costs: from a cluster's measurements, its links, laws of algorithms, and replays of their plans.
#include "simulate/costs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/require.hpp"
#include "collective/algorithm.hpp"
#include "simulate/exchange.hpp"
#include "syncopate/error.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate::simulate::costs {

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

schedule::Cost cost_of(const MeasuredCost& measured) {
  if (measured.table.empty()) return schedule::Cost::affine(measured.a_s, measured.b_s_per_byte);
  schedule::CostInputs inputs;
  for (const auto& [bytes, seconds] : measured.table) inputs.points.push_back({bytes, seconds});
  return schedule::cost_model_named("table").cost(inputs);
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

/// The cost of a collective of all ranks by the links. If ranks of a host share its port, the plans are replayed on
/// ports; a ring is not, because one rank of each host sends to another host, and its law is exact.
schedule::Cost cost_by_links(const Cluster& cluster, PlanRequest request) {
  request.ranks = cluster.ranks;
  const LinkCost& link = link_of(cluster);
  if (cluster.ranks_per_host == 1 || cluster.ranks <= cluster.ranks_per_host || request.algorithm == "ring")
    return cost_of_collective(request, link);
  const Network network = network_of(cluster);
  Exchanger exchanger(network);
  request.ranks_per_host = static_cast<std::uint32_t>(cluster.ranks_per_host);
  MeasuredCost cost;
  for (const std::uint64_t size : sizes_up_to(request.bytes, sizeof(float))) {
    request.bytes = size;
    const collective::Choice choice = collective::select::choose(request, {network.inter, network.intra});
    const bool is_ring = choice.algorithm->name == "ring";
    cost.table.emplace_back(
        static_cast<double>(size),
        is_ring ? choice.law_s : exchanger.run_together({request.collective, request.algorithm, size}));
  }
  return cost_of(cost);
}

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
  if (leg.scope == Scope::group && leg.messages == 0)
    return cost_by_links(set, {.collective = leg.collective,
                               .algorithm = algorithm_of_half(cluster.algorithm, leg.collective),
                               .bytes = bytes});
  const bool within = set.ranks <= set.ranks_per_host;
  std::optional<LinkCost> link = within && cluster.intra ? cluster.intra : cluster.inter;
  base::require(link.has_value(), "the cluster has no link for a leg of the exchange ({} over scope {}); add \"{}\"",
                name_of(leg.collective), name_of(leg.scope), within ? "intra" : "inter");
  link->beta_s_per_byte *= leg.at_once;  // the port of a host passes the bytes of all its ranks
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

/// The pieces of a cost as rows; the last row is that of `bytes`, or the start of the last piece.
std::vector<std::pair<double, double>> table_of(const schedule::Cost& cost, std::uint64_t bytes) {
  std::vector<std::pair<double, double>> table;
  for (const schedule::Piece& piece : cost.pieces()) table.emplace_back(piece.begin_bytes, piece.seconds);
  const schedule::Piece& last = cost.pieces().back();
  const auto most = static_cast<double>(std::max<std::uint64_t>(bytes, 1));
  if (most > last.begin_bytes)
    table.emplace_back(most, last.seconds + (most - last.begin_bytes) * last.seconds_per_byte);
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

namespace syncopate::simulate::costs {

schedule::Cost cost_of_collective(const PlanRequest& request, const LinkCost& link) {
  static_cast<void>(collective::select::choose(request, link));  // throws for an invalid request, even with one rank
  if (request.ranks == 1) return {};
  const auto law = [&](double bytes) {
    PlanRequest at = request;
    at.bytes = static_cast<std::uint64_t>(std::llround(bytes));
    return collective::select::choose(at, link).law_s;
  };
  return schedule::cost_model_named("law").cost(
      {.law = law, .largest_bytes = static_cast<double>(std::max<std::uint64_t>(request.bytes, 1 << 20))});
}

namespace {

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
    Cluster here = cluster;
    for (std::optional<LinkCost>* link : {&here.inter, &here.intra}) {
      if (!link->has_value()) continue;
      (*link)->alpha_s *= change.startup;
      (*link)->beta_s_per_byte *= change.per_byte;
    }
    cost = cost_by_links(here, {.algorithm = cluster.algorithm, .bytes = bytes});
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
    cost = cost_by_links(cluster,
                         {.collective = half, .algorithm = algorithm_of_half(cluster.algorithm, half), .bytes = bytes});
  cost.cpu_s_per_byte = cluster.cpu_s_per_byte / 2;
  return cost;
}

}  // namespace syncopate::simulate::costs

namespace syncopate {

std::vector<MeasuredCost> simulate_costs(const Cluster& cluster, std::uint64_t bytes) {
  simulate::Exchanger exchanger(simulate::network_of(cluster), simulate::Exchanger::Messages::segments);
  std::vector<MeasuredCost> costs;
  for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather}) {
    const bool is_whole = collective == Collective::allreduce;
    const std::string algorithm =
        is_whole ? cluster.algorithm : simulate::costs::algorithm_of_half(cluster.algorithm, collective);
    MeasuredCost cost{.collective = collective, .algorithm = algorithm == "auto" ? "" : algorithm};
    for (const std::uint64_t size :
         simulate::costs::sizes_up_to(bytes, sizeof(float) * static_cast<std::uint64_t>(cluster.ranks)))
      cost.table.emplace_back(static_cast<double>(size), exchanger.run_together({collective, algorithm, size}));
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace syncopate
