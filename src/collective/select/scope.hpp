// Scopes: the sets of ranks that run a request separately, and their plans with the ranks of the whole group.
#pragma once

#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::select {

/// Ranks of the group in ascending order: rank i of the part is the i-th of them.
using PartRanks = std::vector<std::uint32_t>;

/// The parts of the request's scope. A rank outside the scope is in no part.
[[nodiscard]] std::vector<PartRanks> parts_of(const PlanRequest& request);
/// The request for a group of only the ranks of that part.
[[nodiscard]] PlanRequest request_of_part(PlanRequest request, const PartRanks& part);
[[nodiscard]] PlanRequest request_of_largest_part(const PlanRequest& request);
/// A part's plan with its rank numbers replaced by those of the group.
[[nodiscard]] Plan among_all(const Plan& plan, const PartRanks& part);

}  // namespace syncopate::collective::select
