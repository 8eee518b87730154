// Collective cost: the cost laws of the shelf of collective algorithms, as costs that schedules are made from.
#pragma once

#include <string_view>

#include "collective/select/select.hpp"
#include "schedule/cost.hpp"

namespace syncopate::simulate::costs {

/// T(M) of a collective on `request.ranks` ranks joined by such links, exact to 1e-4 up to `request.bytes`; "auto" is,
/// at every size, what the collectives themselves would choose. Throws Misuse where the algorithm does not offer it.
[[nodiscard]] schedule::Cost cost_of_collective(const PlanRequest& request, const LinkCost& link);

}  // namespace syncopate::simulate::costs
