// Plans of a request: every rank's plan, their price and their drawing.
#include <algorithm>

#include "collective/replay/draw.hpp"
#include "collective/replay/price.hpp"
#include "collective/replay/verify.hpp"
#include "collective/select/scope.hpp"
#include "collective/select/select.hpp"

namespace syncopate {

namespace select = collective::select;

namespace {

/// The chunks in bytes. An alltoall's vector is both of its buffers.
collective::plan::ChunkLayout layout_of(const PlanRequest& request, const Plan& plan) {
  if (request.collective == Collective::barrier) return {kBarrierBytes, plan.chunks, {}};
  return {collective::plan::swaps(request.collective) ? 2 * request.bytes : request.bytes, plan.chunks, {}};
}

std::vector<Plan> all_plans_of(const collective::Choice& choice) {
  std::vector<Plan> plans;
  for (std::uint32_t rank = 0; rank < choice.shape.size; ++rank) plans.push_back(collective::build_plan(choice, rank));
  return plans;
}

PlanPrice price_of_part(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = select::choose(request, cost);
  const collective::replay::Plans plans = collective::plans_of(choice);
  const auto hosts = select::hosts_of(request);
  const collective::replay::Ensemble ensemble = collective::replay::are_alike(hosts)
                                                    ? collective::replay::ensemble_of(plans)
                                                    : collective::replay::whole_ensemble_of(plans);
  PlanPrice price = collective::replay::price(ensemble, {layout_of(request, ensemble.programs[0].plan), hosts, cost});
  price.algorithm = choice.algorithm->name;
  return price;
}

}  // namespace

std::vector<Plan> plan_collective(const PlanRequest& request, const NetworkCost& cost) {
  if (request.scope == Scope::group) return all_plans_of(select::choose(request, cost));
  std::vector<Plan> all(static_cast<std::size_t>(request.ranks));
  for (const select::PartRanks& part : select::parts_of(request)) {
    const std::vector<Plan> plans = all_plans_of(select::choose(select::request_of_part(request, part), cost));
    for (std::size_t i = 0; i < part.size(); ++i) all[part[i]] = select::among_all(plans[i], part);
  }
  return all;
}

std::string verify_plans(const PlanRequest& request, const NetworkCost& cost) {
  if (request.scope != Scope::group) return verify_plans(plan_collective(request, cost), request);
  const collective::Choice choice = select::choose(request, cost);
  if (request.ranks == 1) return {};
  return collective::replay::verify(collective::replay::ensemble_of(collective::plans_of(choice)), request.collective,
                                    request.root);
}

PlanPrice price_plans(const PlanRequest& request, const NetworkCost& cost) {
  std::vector<PlanRequest> priced;
  PlanPrice longest;
  for (const select::PartRanks& part : select::parts_of(request)) {
    const PlanRequest alone = select::request_of_part(request, part);
    if (std::ranges::find(priced, alone) != priced.end()) continue;
    const PlanPrice price = price_of_part(alone, cost);
    if (priced.empty() || price.predicted_s > longest.predicted_s) longest = price;
    priced.push_back(alone);
  }
  return longest;
}

std::string draw_plans(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = select::choose(select::request_of_largest_part(request), cost);
  return collective::replay::draw(plan_collective(request, cost), {request.collective, choice.algorithm->name});
}

}  // namespace syncopate
