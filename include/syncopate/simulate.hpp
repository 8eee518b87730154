// Simulation of training steps of many ranks in virtual time, and Replay, which checks it on a real network.
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

/// A slow rank or host `which`: a rank computes, or a host's port transfers a byte, in `factor` times the usual time.
struct Handicap {
  int which = 0;
  double factor = 1;
  double share = 1;  ///< of a rank's steps, drawn with the seed; a host is slow in all
};

struct SimulateOptions {
  /// Names as in PredictOptions::policies, and "dear": reduce-scatter during the backward pass, all-gather during the
  /// next forward pass. Empty: every policy, fusion with PyTorch's defaults, and dear.
  std::vector<std::string> policies;
  std::uint64_t fusion_bytes = 0;  ///< size for `fusion` without a size of its own; 0: from model and ranks
  std::vector<int> ranks;          ///< numbers of ranks, simulated one after another; empty: the cluster's
  double noise = 0;                ///< relative standard deviation of a layer's time; drawn again every step
  int steps = 20;                  ///< number of steps to average, if they differ: noise, or a rank slow in some
  std::uint64_t seed = 1;          ///< of the noise and of the slow steps
  std::vector<Handicap> slow_ranks, slow_hosts;
  /// Cut messages into segments as the engine does, so that latencies overlap. Otherwise a message of n bytes takes
  /// alpha + n beta, as in the cost laws. Needs a cluster with links, and at most kMostSegmentedRanks ranks.
  bool segments = false;
  bool timeline = false;  ///< fill Simulation::timeline with rank 0's last step
  ExchangeLawOf law{};    ///< empty: an all-reduce of the gradients as they are; not with `segments` or slow hosts
  Catalogue catalogue{};  ///< where `policies` are looked up
  std::function<void(std::string_view policy, int ranks)> progress{};  ///< called before each row is computed
};
inline constexpr int kMostSegmentedRanks = 128;

struct Simulation {
  std::string policy;
  int ranks = 1;
  std::string algorithm;       ///< of the exchanges; for dear that of reduce-scatter and all-gather, "auto" if the
                               ///< cluster's algorithm does not offer them
  double iteration_s = 0;      ///< mean over steps of the slowest rank's step
  double compute_s = 0;        ///< the profile's forward and backward pass
  double exposed_s = 0;        ///< iteration_s - compute_s: exchange, and waiting for slower ranks
  double speedup = 1;          ///< ranks x compute_s / iteration_s: MG-WFBP equation 4
  std::vector<Span> timeline;  ///< tracks "forward", "backward", "exchange"; 0 is the start of the step
};

/// One row per number of ranks and policy. Ranks with equal roles share one timeline. Otherwise each rank has a
/// timeline of its own, and exchanges replay the production plans message by message. An exchange with a measured cost
/// ends when that time has passed since the last rank's call. Throws Misuse: an unknown policy, or a rank or host that
/// does not exist.
[[nodiscard]] std::vector<Simulation> simulate_training(const Profile& profile, const Cluster& cluster,
                                                        const SimulateOptions& options = {});

/// A parameter server in place of an all-reduce.
struct ServerScene {
  int servers = 0;         ///< 0: one per host of the workers
  bool own_hosts = false;  ///< each on a separate host; otherwise round-robin on the workers' hosts
  std::string placement = "uniform", consistency = "bsp";  ///< names from the shelves of server/, with a parameter
  double significance = 0;  ///< `adaptive`: size of one step's update relative to the weights; steps add up
  std::vector<std::uint64_t> update_bytes, answer_bytes;  ///< wire bytes of each layer; empty: not coded
  CodingCost update_coding{}, answer_coding{};            ///< per byte of gradients and of weights
};

/// ServerScene::update_bytes and answer_bytes by expectation: those of a codec's packets, with the feedback that it
/// gets by default, for each block of a layer on one server. Empty: codec `none`. Throws Misuse for an unknown codec,
/// and for one that a parameter server does not take there.
[[nodiscard]] std::vector<std::uint64_t> expected_updates(const Profile& profile, const std::string& codec);
[[nodiscard]] std::vector<std::uint64_t> expected_answers(const Profile& profile, const std::string& codec);

struct ServerSimulation {
  Simulation training;  ///< `policy` is the flow: "traditional", "wait_free" or "front_first"
  int servers = 1;
  double pushed_bytes = 0, pulled_bytes = 0;  ///< message bodies per worker and step, including those within a host
  double exchanges = 0;                       ///< pushes per worker, block and step
  double load_variation = 0;                  ///< standard deviation over mean of the servers' bytes
};

/// Workers and servers in virtual time, a row per number of ranks and flow (`options.policies`; empty: all). Servers
/// use placement and consistency as training does. A message occupies the sender's port for alpha + n beta and the
/// receiver's for n beta; streams share a port; a server reduces at gamma. Each worker and each server codes one block
/// after another: updates are encoded on the worker and decoded on the server, an answer is encoded once for each state
/// of a block, and decoded by every worker. A worker codes instead of computing. Not with measured costs, segments, a
/// law or a timeline. Throws Misuse.
[[nodiscard]] std::vector<ServerSimulation> simulate_servers(const Profile& profile, const Cluster& cluster,
                                                             const SimulateOptions& options, const ServerScene& scene);

/// Costs of all-reduce, reduce-scatter and all-gather of up to `bytes` bytes on the cluster's links, by replaying their
/// plans segment by segment: tables that can replace measured ones.
[[nodiscard]] std::vector<MeasuredCost> simulate_costs(const Cluster& cluster, std::uint64_t bytes);

struct ReplayOptions {
  std::string policy = "online";   ///< a name as predict_policies takes it
  std::uint64_t fusion_bytes = 0;  ///< size for `fusion` without a size of its own; 0: from model and ranks
  std::string algorithm = "auto";
  /// "allreduce"; or "reduce_broadcast": the sums at rank 0, and from there to all, both with `algorithm`.
  std::string exchange = "allreduce";
  int steps = 1;
};

/// Replays a profile's steps on a real group: exchanges are real, computing is replaced by sleeping, so a host needs
/// only the cores that its exchanges use. Every rank of `group` makes every call with the same arguments.
class Replay final {
 public:
  /// Throws Misuse: a profile without layers, or with a layer that is not a whole number of f32 elements.
  Replay(Group& group, const Profile& profile);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Measures exchanges (ReplayOptions::exchange) of sizes from 4 bytes a rank to all gradients: the median of
  /// `repeats` calls (fewer for long calls), each timed on its slowest rank. Every rank returns equal values. Throws
  /// Misuse: an unknown exchange.
  [[nodiscard]] MeasuredCost measure(const std::string& algorithm, int repeats,
                                     const std::string& exchange = "allreduce");
  /// Seconds of each step on its slowest rank, from a barrier to the end of the last exchange; equal on every rank.
  /// Policies that weigh times use the costs of `cluster`. Under `online` the ranks agree before each bucket on the
  /// gradients that are ready on all of them. Throws Misuse: an unknown policy or exchange.
  [[nodiscard]] std::vector<double> run(const Cluster& cluster, const ReplayOptions& options);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The profile of a slower computer: every time multiplied by `factor`.
[[nodiscard]] Profile dilated(Profile profile, double factor);

}  // namespace syncopate
