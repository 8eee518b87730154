// Law cost: the cost of an exchange with a codec on a cluster, from its legs.
#pragma once

#include "simulate/costs/cluster_cost.hpp"

namespace syncopate::simulate::costs {

/// The cost of exchanging up to `bytes` bytes of gradients by that law: its legs one after the other, then coding.
/// cost_of_cluster gives the cost of an all-reduce over the whole group; other legs use the links of the ranks that run
/// them. Throws Misuse if the cluster lacks a link that a leg needs.
[[nodiscard]] schedule::Cost cost_of_law(const Cluster& cluster, const ExchangeLaw& law, std::uint64_t bytes,
                                         const Change& change = {});

}  // namespace syncopate::simulate::costs
