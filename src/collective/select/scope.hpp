// Scopes: the parts of a group that carry out a request each for itself, and their plans among all ranks.
#pragma once

#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::select {

/// Ranks of the group, in order: rank i of the part is the i-th of them.
using PartRanks = std::vector<std::uint32_t>;

/// The parts of the request's scope. Ranks that take part in nothing are in none.
[[nodiscard]] std::vector<PartRanks> parts_of(const PlanRequest& request);
/// The request as that part of the ranks alone would make it.
[[nodiscard]] PlanRequest request_of_part(PlanRequest request, const PartRanks& part);
[[nodiscard]] PlanRequest request_of_largest_part(const PlanRequest& request);
/// A plan of the part, with the ranks of the group in place of its own.
[[nodiscard]] Plan among_all(const Plan& plan, const PartRanks& part);

}  // namespace syncopate::collective::select
