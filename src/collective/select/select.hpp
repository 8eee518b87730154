// Selection: the algorithm that a request names, or the one that takes the least time as measured, else by its law.
#pragma once

#include <vector>

#include "collective/choice.hpp"

namespace syncopate::collective::select {

/// Throws Misuse where ranks and hosts are wrong.
void check_ranks(const PlanRequest& request);
/// The host numbers of a request, counted from 0 in the order of the ranks; empty where all share one.
[[nodiscard]] std::vector<std::uint32_t> hosts_of(const PlanRequest& request);
/// The algorithm that the request names, or the fastest: of those that were measured for such ranks and hosts the one
/// with the least time; where none was, the one with the lowest cost law, or a steady one that is predicted to take at
/// most 15 % longer (5 % where bytes are copied through memory). Throws Misuse where the request is wrong.
[[nodiscard]] Choice choose(const PlanRequest& request, const NetworkCost& cost);
/// All that offer the collective and are sensible, in the order of that preference.
[[nodiscard]] std::vector<Choice> rank_choices(const PlanRequest& request, const NetworkCost& cost);

}  // namespace syncopate::collective::select
