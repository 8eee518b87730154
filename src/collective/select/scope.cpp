// Scopes: groups ranks by host or by their indices on hosts, and proves the plans of every part separately.
#include "collective/select/scope.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/named.hpp"
#include "base/require.hpp"
#include "collective/plan/compose.hpp"
#include "collective/plan/host_topology.hpp"
#include "collective/select/select.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kNames[] = {"group", "host", "across"};
}

std::string_view name_of(Scope scope) noexcept { return kNames[static_cast<int>(scope)]; }
Scope scope_named(std::string_view name) { return base::value_named<Scope>("scope", name, kNames); }

}  // namespace syncopate

namespace syncopate::collective::select {

std::vector<PartRanks> parts_of(const PlanRequest& request) {
  check_ranks(request);
  const auto ranks = static_cast<std::uint32_t>(request.ranks);
  if (request.scope == Scope::group) {
    PartRanks all(ranks);
    std::iota(all.begin(), all.end(), 0U);
    return {all};
  }
  const plan::HostTopology topology({.size = ranks, .hosts = hosts_of(request)});
  if (request.scope == Scope::host) return topology.members();
  std::vector<PartRanks> parts;
  for (std::uint32_t place = 0; place < topology.smallest(); ++place) parts.push_back(topology.peers_at(place));
  return parts;
}

PlanRequest request_of_part(PlanRequest request, const PartRanks& part) {
  if (request.scope == Scope::group) return request;
  const std::vector<std::uint32_t> hosts = hosts_of(request);
  request.ranks = static_cast<int>(part.size());
  request.ranks_per_host = 0;
  request.scope = Scope::group;
  request.hosts.clear();
  for (const std::uint32_t rank : part)
    if (!hosts.empty()) request.hosts.push_back(hosts[rank]);
  request.hosts = hosts_of(request);
  return request;
}

PlanRequest request_of_largest_part(const PlanRequest& request) {
  const std::vector<PartRanks> parts = parts_of(request);
  return request_of_part(request, *std::ranges::max_element(parts, {}, &PartRanks::size));
}

Plan among_all(const Plan& plan, const PartRanks& part) {
  Plan embedded{.chunks = plan.chunks, .steps = {}};
  plan::embed(embedded, plan, {.ranks = part});
  return embedded;
}

}  // namespace syncopate::collective::select

namespace syncopate {

namespace {

using collective::select::PartRanks;

/// A rank's plan with peers numbered within the part; those outside it become the part's size, which no plan may name.
Plan within(const Plan& plan, const PartRanks& part) {
  Plan inside = plan;
  for (PlanStep& step : inside.steps)
    step.peer = static_cast<std::uint32_t>(std::ranges::find(part, step.peer) - part.begin());
  return inside;
}

std::string flaw_of(const std::vector<Plan>& plans, const PlanRequest& request, const PartRanks& part) {
  std::vector<Plan> inside;
  for (const std::uint32_t rank : part) inside.push_back(within(plans[rank], part));
  if (part.size() > 1) return verify_plans(inside, request.collective, request.root);
  return inside[0].steps.empty() ? "" : "a rank that is alone has a step";
}

}  // namespace

std::string verify_plans(const std::vector<Plan>& plans, const PlanRequest& request) {
  base::require(plans.size() == static_cast<std::size_t>(request.ranks),
                "there are {} plans to verify for {} ranks; pass one per rank", plans.size(), request.ranks);
  std::vector<bool> has_part(plans.size());
  for (const PartRanks& part : collective::select::parts_of(request)) {
    for (const std::uint32_t rank : part) has_part[rank] = true;
    const std::string flaw = flaw_of(plans, request, part);
    if (!flaw.empty()) return fmt::format("{} (in the part of ranks {})", flaw, fmt::join(part, ", "));
  }
  for (std::size_t rank = 0; rank < plans.size(); ++rank)
    if (!has_part[rank] && !plans[rank].steps.empty()) return fmt::format("rank {} is in no part but has a step", rank);
  return {};
}

}  // namespace syncopate
