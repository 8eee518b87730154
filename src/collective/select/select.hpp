// Selection: the algorithm that a request names, or the fastest by measurements, then by cost laws.
#pragma once

#include <vector>

#include "collective/choice.hpp"

namespace syncopate::collective::select {

/// Throws Misuse if ranks or hosts of the request are invalid.
void check_ranks(const PlanRequest& request);
/// The host number of each rank of a request, from 0 in the order of the ranks; empty if all share one host.
[[nodiscard]] std::vector<std::uint32_t> hosts_of(const PlanRequest& request);
/// The algorithm that the request names, or the fastest one. If any were measured on such ranks and hosts,
/// it is the one with the least measured time. Otherwise it is the one with the lowest cost law, or a steady algorithm
/// that is predicted at most 15 % slower (5 % if bytes are copied through memory). Throws Misuse for an invalid
/// request.
[[nodiscard]] Choice choose(const PlanRequest& request, const NetworkCost& cost);
/// All algorithms that offer the collective and suit the request, in this order of preference.
[[nodiscard]] std::vector<Choice> rank_choices(const PlanRequest& request, const NetworkCost& cost);

}  // namespace syncopate::collective::select
