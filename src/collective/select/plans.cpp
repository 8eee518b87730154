// Plans of requests: a request becomes every rank's plan, their price and their picture.
#include "collective/plan/draw.hpp"
#include "collective/plan/price.hpp"
#include "collective/select/select.hpp"

namespace syncopate {

namespace {

/// The chunks' lengths in bytes: an alltoall has two vectors.
collective::plan::ChunkLayout layout_of(const PlanRequest& request, const Plan& plan) {
  if (request.collective == Collective::barrier) return {kBarrierBytes, plan.chunks, {}};
  return {request.collective == Collective::alltoall ? 2 * request.bytes : request.bytes, plan.chunks, {}};
}

std::vector<Plan> plans_of(const collective::Choice& choice) {
  std::vector<Plan> plans;
  for (std::uint32_t rank = 0; rank < choice.shape.size; ++rank) plans.push_back(collective::build_plan(choice, rank));
  return plans;
}

}  // namespace

std::vector<Plan> plan_collective(const PlanRequest& request, const NetworkCost& cost) {
  return plans_of(collective::select::choose(request, cost));
}

PlanPrice price_plans(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::select::choose(request, cost);
  const std::vector<Plan> plans = plans_of(choice);
  PlanPrice price =
      collective::plan::price(plans, {layout_of(request, plans[0]), collective::select::hosts_of(request), cost});
  price.algorithm = choice.algorithm->name;
  return price;
}

std::string draw_plans(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::select::choose(request, cost);
  return collective::plan::draw(plans_of(choice), {request.collective, choice.algorithm->name});
}

}  // namespace syncopate
