// Collective cost: the cost laws of the collective algorithms as costs that policies can use.
#pragma once

#include <string_view>

#include "collective/select/select.hpp"
#include "schedule/cost.hpp"

namespace syncopate::simulate::costs {

/// T(M) of a collective on `request.ranks` ranks with such links, exact to 1e-4 up to `request.bytes`. "auto" is, for
/// every size, the algorithm that a group would choose. Throws Misuse if the algorithm does not offer the collective.
[[nodiscard]] schedule::Cost cost_of_collective(const PlanRequest& request, const LinkCost& link);

}  // namespace syncopate::simulate::costs
