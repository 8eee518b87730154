// Simulation: training steps of many ranks in virtual time, and its check: replaying a profile on a real network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/group.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/trace.hpp"

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
  std::uint64_t fusion_bytes = 0;  ///< of `fusion` without a size; 0: by model and ranks
  std::vector<int> ranks;          ///< how many to simulate, one after another; empty: as many as the cluster has
  double noise = 0;                ///< standard deviation of a layer's time over its mean, drawn again every step
  int steps = 20;                  ///< with noise: how many steps are averaged
  std::uint64_t seed = 1;          ///< of the noise
  std::vector<Handicap> slow_ranks, slow_hosts;
  /// Messages are cut into segments as the collectives cut them, and latencies of messages under way overlap. Without
  /// it, a message takes alpha + n beta, as in cost laws. For clusters with links; at most kMostSegmentedRanks.
  bool segments = false;
  bool timeline = false;  ///< rows come with what rank 0 does in the last step
  std::function<void(std::string_view policy, int ranks)> progress{};  ///< called before each row is computed
};
inline constexpr int kMostSegmentedRanks = 128;

struct Simulation {
  std::string policy;
  int ranks = 1;
  std::string algorithm;       ///< of its exchanges; of dear: of reduce-scatter and all-gather, "auto" where the
                               ///< cluster's does not offer them
  double iteration_s = 0;      ///< a step: mean over steps, of the slowest rank
  double compute_s = 0;        ///< of the profile
  double exposed_s = 0;        ///< iteration_s - compute_s: exchange, and waiting for ranks that are slower
  double speedup = 1;          ///< ranks x compute_s / iteration_s: MG-WFBP equation 4
  std::vector<Span> timeline;  ///< tracks "forward", "backward", "exchange"; from the begin of the step
};

/// One row per number of ranks and policy. Ranks in equal roles share one timeline; where they differ, each has its own
/// and exchanges run the production plans message by message. Measured costs (no plan to run) end that long after the
/// last rank called. Throws Misuse: an unknown policy, a rank or host that is not there.
[[nodiscard]] std::vector<Simulation> simulate_training(const Profile& profile, const Cluster& cluster,
                                                        const SimulateOptions& options = {});

/// What all-reduce, reduce-scatter and all-gather of up to `bytes` cost on a cluster's links, from playing their plans
/// segment by segment: tables that may take the place of measured ones.
[[nodiscard]] std::vector<MeasuredCost> simulate_costs(const Cluster& cluster, std::uint64_t bytes);

struct ReplayOptions {
  std::string policy = "online";   ///< as predict_policies takes it
  std::uint64_t fusion_bytes = 0;  ///< of `fusion` without a size; 0: by model and ranks
  std::string algorithm = "auto";
  int steps = 1;
};

/// All ranks of `group` make every call, with the same arguments. Gradients are exchanged by the collectives that
/// training uses; nothing computes, so a host needs no more cores than its exchange takes.
class Replay final {
 public:
  /// Throws Misuse: a profile without layers, or whose layers are not whole floats.
  Replay(Group& group, const Profile& profile);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// What an all-reduce costs here: sizes from 4 bytes a rank to all gradients, the median of `repeats` calls (fewer
  /// where they are long), each as long as on its slowest rank. The same on every rank.
  [[nodiscard]] MeasuredCost measure(const std::string& algorithm, int repeats);
  /// Seconds of each step, on its slowest rank, from a barrier to the end of the last exchange; the same on every rank.
  /// `cluster` is what policies that weigh times decide by. Under `online` the ranks
  /// agree before each bucket on what is ready everywhere.
  [[nodiscard]] std::vector<double> run(const Cluster& cluster, const ReplayOptions& options);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The same model on a slower computer: all times `factor` times as long.
[[nodiscard]] Profile dilated(Profile profile, double factor);

}  // namespace syncopate
