// Predictions: how long a training step takes under each policy, from a model's profile and a cluster's numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/cluster.hpp"
#include "syncopate/plan.hpp"

namespace syncopate {

/// Parameters that become ready together: a layer's weight and bias.
struct ProfileLayer {
  std::string name;
  std::uint64_t bytes = 0;
  double backward_s = 0;  ///< measured without communication
};

/// A model's step on one rank, layers in forward order.
struct Profile {
  std::string model;
  double forward_s = 0;
  std::vector<ProfileLayer> layers;
};

/// From JSON text (docs/scheduling.md has the format). Throws Misuse that names `file` and the key.
[[nodiscard]] Profile parse_profile(std::string_view json, const std::string& file);
/// From a file; throws SystemFailure where it cannot be read.
[[nodiscard]] Profile read_profile(const std::string& file);

/// What a layer holds and computes.
struct LayerWork {
  std::string name;
  std::uint64_t elements = 0;
  double flops = 0;  ///< of one sample's forward pass
};

/// The layers of an architecture of the catalogue; throws Misuse that lists them.
[[nodiscard]] std::vector<LayerWork> layers_of_architecture(const std::string& architecture);
/// A profile that was not measured: a step of `batch` samples on a machine that computes so much. A layer's backward
/// pass computes its gradient and its input's, twice the forward pass. Throws Misuse.
[[nodiscard]] Profile derive_profile(const std::string& model, const std::vector<LayerWork>& layers, double flops_per_s,
                                     int batch);

/// What an exchange of up to `bytes` of gradients costs on `ranks` ranks of such a cluster. On another number of ranks
/// than the cluster's it goes by the links, because measured costs hold for the ranks they were measured on. Throws
/// Misuse where there is nothing to go by.
[[nodiscard]] ExchangeCost exchange_cost(const Cluster& cluster, int ranks, std::uint64_t bytes);

struct PredictOptions {
  /// Names of shelf policy; `fusion:SIZE` is fusion with buckets of that size, `fusion:ddp` that of PyTorch (a bucket
  /// of 1 MiB, then of 25 MiB, each filled past its size). Empty: every policy, and fusion as PyTorch and Horovod have
  /// it.
  std::vector<std::string> policies;
  std::uint64_t fusion_bytes = 0;  ///< of `fusion` without a size; 0: by model and ranks
};

/// Layers [first, last] travel together; seconds of the step.
struct PredictedBucket {
  std::size_t first = 0, last = 0;
  std::uint64_t bytes = 0;
  double ready_s = 0, begin_s = 0, end_s = 0;
};

struct Prediction {
  std::string policy;
  std::vector<PredictedBucket> buckets;  ///< in the order of their exchange: the last layers' first
  double compute_s = 0;                  ///< forward and backward pass, undisturbed
  double iteration_s = 0;                ///< a step
  double exposed_s = 0;                  ///< what the exchange adds to compute_s
  double over_optimum = 0;               ///< iteration_s over that of the best partition, minus 1
  double with_merging_s = 0;             ///< a step with the best partition
  double with_bandwidth_s = 0;           ///< a step of this policy with twice the bandwidth
  double with_latency_s = 0;             ///< a step of this policy with half the startup cost
  /// Which of these gains most: "merging", "bandwidth", "latency"; "nothing" where none gains 1 %.
  std::string best_change;
};

/// One prediction per policy. Throws Misuse: an unknown policy or algorithm, a cluster without numbers for it.
[[nodiscard]] std::vector<Prediction> predict_policies(const Profile& profile, const Cluster& cluster,
                                                       const PredictOptions& options = {});

}  // namespace syncopate
