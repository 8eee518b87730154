// Simulation: training steps of many ranks in virtual time, with ranks that differ, hosts that are slow, ports that are
// shared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/predict.hpp"

namespace syncopate {

/// Rank or host `which` takes `factor` times as long: a rank to compute, a host's port to move a byte.
struct Handicap {
  int which = 0;
  double factor = 1;
};

struct SimulateOptions {
  /// As for predict_policies, and "dear": reduce-scatter behind the backward pass, all-gather behind the next forward
  /// pass. Empty: every policy, fusion as PyTorch has it, and dear.
  std::vector<std::string> policies;
  std::uint64_t fusion_bytes = 4 << 20;
  std::vector<int> ranks;  ///< how many to simulate, one after another; empty: as many as the cluster has
  double noise = 0;        ///< standard deviation of a layer's time over its mean, drawn anew every step
  int steps = 20;          ///< with noise: how many steps are averaged
  std::uint64_t seed = 1;  ///< of the noise
  std::vector<Handicap> slow_ranks, slow_hosts;
};

struct Simulation {
  std::string policy;
  int ranks = 1;
  double iteration_s = 0;  ///< a step: mean over steps, of the slowest rank
  double compute_s = 0;    ///< of the profile
  double exposed_s = 0;    ///< iteration_s - compute_s: exchange, and waiting for ranks that are slower
  double speedup = 1;      ///< ranks x compute_s / iteration_s: MG-WFBP equation 4
};

/// One row per number of ranks and policy. Ranks in equal roles share one timeline; where they differ, each has its own
/// and exchanges run the production plans message by message. Measured costs (no plan to run) end that long after the
/// last rank called. Throws Misuse: an unknown policy, a rank or host that is not there.
[[nodiscard]] std::vector<Simulation> simulate_training(const Profile& profile, const Cluster& cluster,
                                                        const SimulateOptions& options = {});

}  // namespace syncopate
