// Building plans: a request becomes every rank's plan.
#include "collective/algorithm.hpp"

namespace syncopate {

std::vector<Plan> plan_collective(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::choose(request, cost);
  std::vector<Plan> plans;
  for (std::uint32_t rank = 0; rank < choice.shape.size; ++rank) plans.push_back(collective::build_plan(choice, rank));
  return plans;
}

}  // namespace syncopate
