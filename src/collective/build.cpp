// Building plans: a request becomes every rank's plan.
#include "base/require.hpp"
#include "collective/algorithm.hpp"

namespace syncopate {

namespace {

void check(const PlanRequest& request) {
  base::require(request.ranks >= 1 && request.ranks <= 65536, "ranks is {}; allowed: 1 to 65536", request.ranks);
  base::require(request.blocks <= 65536, "blocks is {}; allowed: 0 (the best) to 65536", request.blocks);
  base::require(request.root >= 0 && request.root < request.ranks, "root is {}; allowed: 0 to {} (ranks - 1)",
                request.root, request.ranks - 1);
}

}  // namespace

std::vector<Plan> plan_collective(const PlanRequest& request) {
  check(request);
  const collective::Algorithm& algorithm = collective::select(request.algorithm, request, LinkCost{});
  std::vector<Plan> plans;
  collective::Shape shape = collective::shape_of(request, algorithm, LinkCost{});
  for (shape.rank = 0; shape.rank < shape.size; ++shape.rank)
    plans.push_back(shape.size == 1 ? Plan{} : algorithm.build(shape));
  return plans;
}

}  // namespace syncopate
