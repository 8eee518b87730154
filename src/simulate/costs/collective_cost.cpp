// Collective cost: selects an algorithm and passes its cost law to the schedule's `law`.
#include "simulate/costs/collective_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/require.hpp"

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

}  // namespace syncopate::simulate::costs
