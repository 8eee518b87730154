// Costs: of exchanges with a codec, of collective algorithms by law or by replay, and of an all-reduce on a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collective/select/select.hpp"
#include "schedule/cost.hpp"
#include "syncopate/predict.hpp"

namespace syncopate::simulate::costs {

/// A change of the network: factors for the start-up cost and for the cost per sent byte.
struct Change {
  double startup = 1, per_byte = 1;
};

/// The cost of exchanging up to `bytes` bytes of gradients by that law: its legs one after the other, then coding.
/// cost_of_cluster gives the cost of an all-reduce over the whole group; other legs use the links of the ranks that run
/// them. Throws Misuse if the cluster lacks a link that a leg needs.
[[nodiscard]] schedule::Cost cost_of_law(const Cluster& cluster, const ExchangeLaw& law, std::uint64_t bytes,
                                         const Change& change = {});

/// T(M) of a collective on `request.ranks` ranks with such links, exact to 1e-4 up to `request.bytes`. "auto" is, for
/// every size, the algorithm that a group would choose. Throws Misuse if the algorithm does not offer the collective.
[[nodiscard]] schedule::Cost cost_of_collective(const PlanRequest& request, const LinkCost& link);

/// Bytes of an agreement before a bucket leaves (policy online): the number of a gradient.
inline constexpr std::uint64_t kAgreedBytes = sizeof(std::int64_t);

/// The cost with T(0) scaled as start-up, and the rest scaled per byte.
[[nodiscard]] schedule::Cost changed(const schedule::Cost& cost, const Change& change);
/// The cost of an all-reduce of up to `bytes` bytes. Measured costs of the cluster's algorithm come first; for "auto"
/// the one without an algorithm's name, or the least of all. Otherwise the links: `intra` if all ranks share one host,
/// else the plans on ports that the ranks of a host share. Throws Misuse if the cluster has no usable costs.
[[nodiscard]] schedule::Cost cost_of_cluster(const Cluster& cluster, std::uint64_t bytes, const Change& change = {});
/// Seconds of one agreement of the ranks on the next bucket (policy online), as the synchronizer does it: an all-reduce
/// of one number by the algorithm that is fastest for it, measured or by the links. 0 for one rank.
[[nodiscard]] double agreement_s(const Cluster& cluster, const Change& change = {});
/// Whether an all-reduce's cost is measured.
[[nodiscard]] bool is_measured(const Cluster& cluster);
/// The algorithm for one half of an all-reduce, a reduce-scatter or an all-gather: the all-reduce's algorithm if it
/// offers that half, else "auto".
[[nodiscard]] std::string algorithm_of_half(const std::string& algorithm, Collective half);
/// The cost of one half of an all-reduce by that algorithm; half the all-reduce's time if only that was measured.
[[nodiscard]] schedule::Cost cost_of_half(const Cluster& cluster, Collective half, std::uint64_t bytes);

}  // namespace syncopate::simulate::costs
