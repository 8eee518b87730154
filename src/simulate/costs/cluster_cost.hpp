// Cluster cost: what an all-reduce costs on a cluster, from what its file knows: measured costs before links.
#pragma once

#include <cstdint>
#include <string>

#include "schedule/cost.hpp"
#include "syncopate/predict.hpp"

namespace syncopate::simulate::costs {

/// What ranks agree on before a bucket leaves under policy online: the number of a gradient.
inline constexpr std::uint64_t kAgreedBytes = sizeof(std::int64_t);

/// What might be bought: factors of the startup cost and of the cost per byte sent.
struct Change {
  double startup = 1, per_byte = 1;
};

/// Costs of gradients of up to `bytes`. Measured costs of the algorithm come first; for "auto" the one that names no
/// algorithm, or the least of those that do; then the links: `intra` where all ranks are on one host, else `inter`,
/// as if every rank had a port of its own. Throws Misuse where there is nothing to go by.
[[nodiscard]] schedule::Cost cost_of_cluster(const Cluster& cluster, std::uint64_t bytes, const Change& change = {});
/// What it takes the ranks to agree on the next bucket (policy online), as the synchronizer does it: an all-reduce of
/// one number by whichever algorithm is fastest for it, measured or by the links. Nothing for one rank.
[[nodiscard]] double agreement_s(const Cluster& cluster, const Change& change = {});
/// Whether an all-reduce's cost comes from measured costs.
[[nodiscard]] bool is_measured(const Cluster& cluster);
/// The algorithm of half of an all-reduce, a reduce-scatter or an all-gather: the all-reduce's where it offers that,
/// else "auto".
[[nodiscard]] std::string algorithm_of_half(const std::string& algorithm, Collective half);
/// What half of an all-reduce costs by that algorithm: half the all-reduce's time where only that was measured.
[[nodiscard]] schedule::Cost cost_of_half(const Cluster& cluster, Collective half, std::uint64_t bytes);

}  // namespace syncopate::simulate::costs
