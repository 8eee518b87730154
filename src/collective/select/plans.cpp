// Plans of requests: a request becomes every rank's plan, their price and their picture.
#include "collective/replay/draw.hpp"
#include "collective/replay/price.hpp"
#include "collective/replay/verify.hpp"
#include "collective/select/select.hpp"

namespace syncopate {

namespace {

/// The chunks' lengths in bytes: an alltoall has two vectors.
collective::plan::ChunkLayout layout_of(const PlanRequest& request, const Plan& plan) {
  if (request.collective == Collective::barrier) return {kBarrierBytes, plan.chunks, {}};
  return {collective::plan::swaps(request.collective) ? 2 * request.bytes : request.bytes, plan.chunks, {}};
}

}  // namespace

std::vector<Plan> plan_collective(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::select::choose(request, cost);
  std::vector<Plan> plans;
  for (std::uint32_t rank = 0; rank < choice.shape.size; ++rank) plans.push_back(collective::build_plan(choice, rank));
  return plans;
}

std::string verify_plans(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::select::choose(request, cost);
  if (request.ranks == 1) return {};
  return collective::replay::verify(collective::replay::ensemble_of(collective::plans_of(choice)), request.collective,
                                    request.root);
}

PlanPrice price_plans(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::select::choose(request, cost);
  const collective::replay::Plans plans = collective::plans_of(choice);
  const auto hosts = collective::select::hosts_of(request);
  const collective::replay::Ensemble ensemble = collective::replay::are_alike(hosts)
                                                    ? collective::replay::ensemble_of(plans)
                                                    : collective::replay::whole_ensemble_of(plans);
  PlanPrice price = collective::replay::price(ensemble, {layout_of(request, ensemble.programs[0].plan), hosts, cost});
  price.algorithm = choice.algorithm->name;
  return price;
}

std::string draw_plans(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::select::choose(request, cost);
  return collective::replay::draw(plan_collective(request, cost), {request.collective, choice.algorithm->name});
}

}  // namespace syncopate
