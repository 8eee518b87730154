// Collective cost: selection and cost law of an algorithm, handed to the schedule's `law`.
#include "simulate/collective_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/require.hpp"

namespace syncopate::simulate {

schedule::Cost cost_of_collective(const PlanRequest& request, const LinkCost& link) {
  base::require(request.ranks >= 1, "{} ranks; allowed: 1 and more", request.ranks);
  if (request.algorithm != "auto")
    static_cast<void>(collective::algorithm_named(request.algorithm, request.collective));
  if (request.ranks == 1) return {};
  const auto law = [&](double bytes) {
    PlanRequest at = request;
    at.bytes = static_cast<std::uint64_t>(std::llround(bytes));
    return collective::select(request.algorithm, at, link).seconds(request.collective, request.ranks, bytes, link);
  };
  return schedule::cost_model_named("law").cost(
      {.law = law, .largest_bytes = static_cast<double>(std::max<std::uint64_t>(request.bytes, 1 << 20))});
}

}  // namespace syncopate::simulate
