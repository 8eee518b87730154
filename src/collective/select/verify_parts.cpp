// Verification of a scope: proves every part of the ranks separately, and that its plans do not leave the part.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/require.hpp"
#include "collective/select/scope.hpp"

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
