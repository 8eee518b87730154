// Predictions: how long a training step takes under each policy, from a model's profile and a cluster's numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/catalogue.hpp"
#include "syncopate/cluster.hpp"
#include "syncopate/plan.hpp"

namespace syncopate {

/// Parameters that become ready together: a layer's weight and bias.
struct ProfileLayer {
  std::string name;
  std::uint64_t bytes = 0;
  double backward_s = 0;   ///< measured without communication
  std::uint64_t rows = 0;  ///< rows of the largest parameter as a matrix; 0: unknown
};

/// Rows of the layer as one matrix of f32: `rows` if they divide its elements, else the divisor that is nearest to
/// their root from below; all elements of a prime number.
[[nodiscard]] std::size_t rows_of(const ProfileLayer& layer);

/// A model's step on one rank, layers in forward order.
struct Profile {
  std::string model;
  double forward_s = 0;
  std::vector<ProfileLayer> layers;
};

/// Parses JSON text (format: docs/scheduling.md). Throws Misuse that names `file` and the key.
[[nodiscard]] Profile parse_profile(std::string_view json, const std::string& file);
/// Reads a file; throws SystemFailure if it cannot be read.
[[nodiscard]] Profile read_profile(const std::string& file);

/// Parameters and computing of one layer.
struct LayerWork {
  std::string name;
  std::uint64_t elements = 0;
  double flops = 0;  ///< of one sample's forward pass
};

/// The layers of an architecture of the catalogue; throws Misuse that lists them.
[[nodiscard]] std::vector<LayerWork> layers_of_architecture(const std::string& architecture);
/// Derives a profile: a step of `batch` samples on a machine with the given throughput. The backward pass of a layer
/// computes two gradients, of its weights and of its input, so it takes twice as long as the forward pass. Throws
/// Misuse.
[[nodiscard]] Profile derive_profile(const std::string& model, const std::vector<LayerWork>& layers, double flops_per_s,
                                     int batch);

/// The cost of an exchange of up to `bytes` bytes of gradients on `ranks` ranks of the cluster. If `ranks` is not the
/// cluster's number of ranks, the cost follows the laws of the links, because measured costs hold only for the measured
/// number of ranks. Throws Misuse if the cluster has no usable costs.
[[nodiscard]] ExchangeCost exchange_cost(const Cluster& cluster, int ranks, std::uint64_t bytes,
                                         const ExchangeLaw& law = {});
/// Returns `cluster` with the cost of this law, up to `bytes` bytes of gradients, in place of the all-reduce's. Legs
/// other than an all-reduce over the group follow the laws of the links. Throws Misuse as exchange_cost does.
[[nodiscard]] Cluster with_exchange(const Cluster& cluster, const ExchangeLaw& law, std::uint64_t bytes);
/// The law of an exchange by the number of ranks and of ranks per host.
using ExchangeLawOf = std::function<ExchangeLaw(int ranks, int ranks_per_host)>;

struct PredictOptions {
  /// Names from shelf policy. `fusion:SIZE` is fusion with buckets of that size; `fusion:ddp` is PyTorch's rule (a
  /// first bucket of 1 MiB, then 25 MiB, each closed by the layer that reaches its size). Empty: every policy, and
  /// fusion with the defaults of PyTorch and Horovod.
  std::vector<std::string> policies;
  std::uint64_t fusion_bytes = 0;  ///< size for `fusion` without a size of its own; 0: from model and ranks
  ExchangeLawOf law{};             ///< empty: an all-reduce of the gradients as they are
  Catalogue catalogue{};           ///< where `policies` are looked up
};

/// Layers [first, last], which travel together; times count from the start of the step.
struct PredictedBucket {
  std::size_t first = 0, last = 0;
  std::uint64_t bytes = 0;
  double ready_s = 0, begin_s = 0, end_s = 0;
};

struct Prediction {
  std::string policy;
  std::vector<PredictedBucket> buckets;  ///< in the order of exchange, the last layers first
  double compute_s = 0;                  ///< forward and backward pass without communication
  double iteration_s = 0;                ///< the whole step
  double exposed_s = 0;                  ///< iteration_s - compute_s
  double over_optimum = 0;               ///< iteration_s / iteration_s of the best partition - 1
  double with_merging_s = 0;             ///< iteration_s with the best partition
  double with_bandwidth_s = 0;           ///< iteration_s of this policy with twice the bandwidth
  double with_latency_s = 0;             ///< iteration_s of this policy with half the start-up cost
  /// The change that shortens the step most: "merging", "bandwidth" or "latency"; "nothing" if none saves 1 %.
  std::string best_change;
};

/// One prediction per policy. Throws Misuse: an unknown policy or algorithm, or a cluster without its costs.
[[nodiscard]] std::vector<Prediction> predict_policies(const Profile& profile, const Cluster& cluster,
                                                       const PredictOptions& options = {});

}  // namespace syncopate
