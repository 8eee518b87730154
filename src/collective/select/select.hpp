// Selection: the algorithm that a request names, or the fastest by measured times, then by cost laws.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "collective/choice.hpp"

namespace syncopate::collective::select {

/// An algorithm's cost law for a given shape, as a function of the bytes.
using Law = std::function<double(double bytes)>;

/// Whether the measured costs apply to a shape: the same number of ranks, on hosts of the same size.
[[nodiscard]] bool covers(const NetworkCost& cost, const Shape& shape);

struct Asked {
  Collective collective = Collective::allreduce;
  std::string_view algorithm;
  double bytes = 0;
};

/// Seconds of the collective by that algorithm, from its measured table. Between two sizes: linear interpolation of
/// log time over log size. Beyond the table: the cost law, scaled to meet the table's nearest entry. nullopt if it was
/// not measured. allgather_v and alltoall_v use the measurements of allgather and alltoall, which have the same plans.
[[nodiscard]] std::optional<double> measured_seconds(const NetworkCost& cost, const Asked& asked, const Law& law);

/// Throws Misuse if ranks or hosts of the request are invalid.
void check_ranks(const PlanRequest& request);
/// The host number of each rank of a request, from 0 in the order of the ranks; empty if all share one host.
[[nodiscard]] std::vector<std::uint32_t> hosts_of(const PlanRequest& request);
/// The algorithm that the request names, or the fastest one. If any were measured on such ranks and hosts,
/// it is the one with the least measured time. Otherwise it is the one with the lowest cost law, or a steady algorithm
/// that is predicted at most 15 % slower (5 % if bytes are copied through memory). Throws Misuse for an invalid
/// request. `sharing` keeps what it counts for the next call.
[[nodiscard]] Choice choose(const PlanRequest& request, const NetworkCost& cost, PortSharing& sharing);
[[nodiscard]] Choice choose(const PlanRequest& request, const NetworkCost& cost);
/// All algorithms that offer the collective and suit the request, in this order of preference.
[[nodiscard]] std::vector<Choice> rank_choices(const PlanRequest& request, const NetworkCost& cost);

}  // namespace syncopate::collective::select
