// Law cost: what an exchange with a codec costs on a cluster, from its legs.
#pragma once

#include "simulate/costs/cluster_cost.hpp"

namespace syncopate::simulate::costs {

/// The cost of exchanging up to `bytes` bytes of gradients by that law: its legs one after the other, then coding. An
/// all-reduce of the whole group costs what cost_of_cluster says; other legs go by the links of the ranks that run
/// them. Throws Misuse if the cluster lacks a link that a leg needs.
[[nodiscard]] schedule::Cost cost_of_law(const Cluster& cluster, const ExchangeLaw& law, std::uint64_t bytes,
                                         const Change& change = {});

}  // namespace syncopate::simulate::costs
