// The synchronizer: combines the gradients of all ranks while the backward pass still runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/catalogue.hpp"
#include "syncopate/cluster.hpp"
#include "syncopate/codec.hpp"
#include "syncopate/coding.hpp"
#include "syncopate/dtype.hpp"
#include "syncopate/group.hpp"
#include "syncopate/plan.hpp"
#include "syncopate/trace.hpp"

namespace syncopate {

/// One gradient tensor.
struct Gradient {
  std::string name;  ///< unique; keys a codec's randomness and its saved state
  std::size_t elements = 0;
  DType dtype = DType::f32;
  std::size_t rows = 0;  ///< rows of the tensor as a matrix, for codecs that use it; 0: a vector of `elements` rows
  std::string codec{};   ///< the gradient's own; empty: that of SynchronizerOptions::coding
  /// For predictions only: the share of its elements that a codec with a fixed threshold sends, such as a run's
  /// Synchronizer::sent_shares; 0: not known.
  double density = 0;
};

/// Where combined gradients are applied to the weights. The exchange determines it.
enum class Updater : std::uint8_t {
  caller,      ///< the caller, after `wait`: the exchange ends with gradients
  every_rank,  ///< the synchronizer calls `SynchronizerOptions::update` on every rank: the exchange ends with weights
  root,  ///< the synchronizer calls `update` on rank 0 only, which holds the optimizer's state; the others receive its
         ///< weights
  shards,  ///< the synchronizer calls `update` on every rank for that rank's shards (optimizer.hpp); all ranks receive
           ///< all weights
};
[[nodiscard]] Updater updater_of(std::string_view exchange);  ///< throws Misuse, naming the allowed names

struct SynchronizerOptions {
  Catalogue catalogue{};  ///< where `policy` and the codecs are looked up; every rank needs the same entries
  /// A name from shelf schedule/policy. Policies that weigh times (mg_wfbp, exact_dp) first measure for nine steps
  /// under temporary partitions; then rank 0 plans, and every rank adopts its plan.
  std::string policy = "fusion";
  std::optional<ExchangeCost> cost;  ///< of exchanges, for policies that weigh times; empty: measured
  /// Policies that weigh times: steps between checks for drift; 0: never check. If times have changed by more than a
  /// fifth, the ranks measure and plan again, and then check half as often.
  int check_every = 32;
  std::size_t fusion_bytes = 0;  ///< size at which the fusion policy closes a bucket; 0: from model and ranks
  CodingOptions coding{};
  std::string exchange = "allreduce";  ///< a name from shelf sync/exchange
  std::string algorithm = "auto";      ///< collective algorithm
  bool zero_missing = false;           ///< a gradient that never became ready counts as zero; otherwise it is an error
  double clip_norm = 0;  ///< > 0: scale the averaged gradients so that their global L2 norm is at most this
  /// With more than one processor, a separate thread encodes the next bucket and decodes the previous one during the
  /// current exchange. Off: the communication thread does both in turn, for comparison. Results are bitwise equal.
  bool code_ahead = true;
  /// Receives a span per bucket and per wait, and a span per planned bucket once steps are predicted. Must outlive the
  /// synchronizer.
  Trace* trace = nullptr;
  std::function<double()> clock_s;  ///< for all measured times, called from any thread; empty: the monotonic clock

  /// weights[i]: the weights of gradient i, with the same number of elements; initially equal on all ranks
  /// (`broadcast_all`). Exchanges that end with weights need them, and read and write them from the last `ready(i)` of
  /// a step until `wait(i)` returns. Codecs that weigh gradients by them (importance) need them too, and read weights
  /// of f32, f16 or bf16 in that time. All others ignore them.
  std::vector<Buffer> weights;

  // Options of exchanges that end with weights. These exchanges require `update`; others refuse it.

  /// Applies the averaged gradients [first, last] to their weights, and resets the gradients to the values that the
  /// next step adds to (usually zero). With exchange "sharded" only this rank's shards hold averages. Runs on: the
  /// communication thread, for one bucket at a time.
  std::function<void(std::size_t first, std::size_t last)> update;
  int broadcast_every = 5;  ///< exchange allreduce_broadcast: steps between broadcasts of rank 0's weights
};

/// The cost law of the exchange and the codec of these options for these gradients, on `cluster.ranks` ranks with
/// `cluster.ranks_per_host` ranks per host. Coding times are those of `cluster`, or 0 if it has none. Throws Misuse.
[[nodiscard]] ExchangeLaw exchange_law(std::span<const Gradient> gradients, const SynchronizerOptions& options,
                                       const Cluster& cluster);

/// The cluster's coding times of a codec, whether or not its parameter is written out there; of "none" they are 0 if
/// the cluster has none. Empty: they are unknown. Throws Misuse for a codec that the catalogue lacks.
[[nodiscard]] std::optional<CodingCost> coding_cost(const Cluster& cluster, const std::string& codec,
                                                    const Catalogue& catalogue = {});

/// A, B and none for "auto:A+B+none"; nothing for any other text. Throws Misuse if a name is empty or repeated.
[[nodiscard]] std::vector<std::string> auto_codecs(std::string_view text);
/// The codecs that `text` allows (ways): its auto_codecs, or else only that codec. Throws Misuse as auto_codecs does.
[[nodiscard]] std::vector<std::string> codec_ways(std::string_view text);

/// The rule of "auto:A+B": the index of the way with the shortest time, of equal ones the first; but that of "none", if
/// it is a way, unless the shortest time saves the share `at_least` of its time. Throws Misuse without a time per way.
/// - choose_codecs chooses for each bucket, by its exchange alone: a synchronizer has a codec per gradient, and a law
///   gives times without noise, so that every gain counts (at_least = 0).
/// - Python's DistributedDataParallel chooses one codec for all buckets, because its combiner has only one, and by the
///   step: it knows when buckets are ready, so an exchange that computing hides costs nothing. Its times are measured
///   in a few steps, and gains within their noise do not count (at_least = 0.05).
[[nodiscard]] std::size_t quickest_way(const std::vector<std::string>& ways, const std::vector<double>& seconds,
                                       double at_least = 0);
/// When the last exchange ends, if they run one at a time in this order: that of bucket i begins when the bucket is
/// ready, at ready_s[i], and the one before has ended, and takes cost_s[i]. Throws Misuse for different lengths.
[[nodiscard]] double exchanges_end_s(const std::vector<double>& ready_s, const std::vector<double>& cost_s);

/// The codec of one bucket of a partition, and the predicted time of its exchange with each allowed codec (way).
struct CodecChoice {
  std::size_t first = 0, last = 0;  ///< gradients
  std::uint64_t bytes = 0;
  std::vector<double> predicted_s;  ///< one per way
  std::size_t way = 0;              ///< the quickest_way
};
/// Returns the cost of an exchange of up to `bytes` bytes under a law, as `exchange_cost` (predict.hpp) does for a
/// cluster.
using ExchangeCostOf = std::function<ExchangeCost(const ExchangeLaw& law, std::uint64_t bytes)>;
/// For every bucket of these options' policy, in forward order, the cheapest of codec_ways(options.coding.codec).
/// Throws Misuse as exchange_law does, for a policy that weighs times, and for a codec whose coding times the cluster
/// lacks.
[[nodiscard]] std::vector<CodecChoice> choose_codecs(std::span<const Gradient> gradients,
                                                     const SynchronizerOptions& options, const Cluster& cluster,
                                                     const ExchangeCostOf& cost_of);

/// Costs of the last step.
struct StepStatistics {
  std::uint64_t wire_bytes = 0;     ///< sent by this rank, headers included
  std::uint64_t payload_bytes = 0;  ///< encoded by this rank's codecs: values, indices and masks, each counted once
  double wait_s = 0;                ///< time `wait` blocked its caller
  double gradient_norm = 0;         ///< global L2 norm before clipping; 0 without clip_norm, and where no update runs
  double predicted_s = 0;           ///< the step's time, predicted before it began; 0: not predicted yet
  bool measuring = false;           ///< the step ran under a temporary partition for measuring
};

/// The elements of one gradient that its codec sent, since the synchronizer was created; zeros if it sends all.
struct SentShare {
  std::uint64_t sent = 0, elements = 0;  ///< sums over the steps; sent / elements is the density
  double threshold = 0;  ///< of the last step, of codecs that agree on one (importance); for beta > 0 alpha alone
  /// Variance over mean of the importance when this rank last proposed a mask (codec importance); 0: it did not yet.
  double spread = 0;
  /// Sum over the steps and all ranks' masks, of codecs with masks (importance): an element in two masks counts twice.
  std::uint64_t proposed = 0;
  /// Elements by importance in one of the steps in which this rank proposed a mask (codec importance); zeros: none yet.
  compress::Octaves importances{};
};

/// A codec's state between steps on one rank (residuals, momenta), by gradient: for checkpoints.
struct SavedCodecState {
  std::string codec;  ///< its name and the kind of feedback, which must be the same where the state is restored
  std::uint64_t steps = 0;
  int rank = 0, ranks = 1;  ///< that saved it, of how many; the same where the state is restored
  std::vector<std::pair<std::string, std::vector<std::byte>>> gradients{};  ///< name, bytes; forward order
};

/// One bucket: the gradients [first, last] travel together.
struct BucketInfo {
  std::size_t first = 0, last = 0;
  std::size_t bytes = 0;
};

/// Owns the gradients' memory (one arena per type, in forward order) and averages gradients over the ranks of a group.
/// In a step the backward pass calls `ready(i)` once for every gradient, from any threads; then the caller calls
/// `wait()`. Ranks pass equal gradients and options: a difference is a Mismatch; policy and plan are rank 0's.
///
/// An exchange that ends with weights updates them during the backward pass and delivers them to every rank in forward
/// order. To overlap the delivery with the next forward pass, call `wait(i)` before the forward pass uses the weights
/// of gradient i, and `wait()` before the next backward pass. To have all weights at once, call `wait()` at the end of
/// the step. In between, this thread must not start other operations of the group, because ranks would disagree on
/// their order.
class Synchronizer final {
 public:
  /// `gradients` in forward order. Throws Misuse (unknown names, empty tensors, a type that the codec does not take, an
  /// algorithm that the exchange cannot use), Mismatch (ranks disagree).
  Synchronizer(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options = {});
  /// Other ranks may wait for this one: buckets whose gradients are ready are exchanged first, and, if all gradients
  /// are ready, weights are delivered; with their results, or with an error after the group's timeout at the latest. If
  /// the destructor runs because of an exception, only the exchange in progress ends.
  ~Synchronizer();
  Synchronizer(const Synchronizer&) = delete;
  Synchronizer& operator=(const Synchronizer&) = delete;

  /// The memory of gradient i: initially zero, valid as long as the synchronizer, and as long as `memory` is held.
  [[nodiscard]] Buffer gradient(std::size_t i) const;
  /// The memory of all gradients, for callers that use it after the synchronizer is destroyed.
  [[nodiscard]] std::vector<std::shared_ptr<std::byte[]>> memory() const;
  /// Reports that gradient i is completely written. The exchange of its bucket may start at once, on another thread.
  void ready(std::size_t i);
  /// Returns when every gradient holds the average, or every weight its new value. Throws what the exchange threw, or
  /// Misuse naming a gradient that never became ready (the other ranks throw RemoteFailure with the same text).
  void wait();
  /// Waits for gradient i only and returns its bucket. If the exchange ends with gradients: returns when gradient i
  /// holds the average; every gradient from the first of its bucket to the last of the model must be ready, because
  /// buckets leave in that order. If it ends with weights: returns when the weights of gradient i are updated; every
  /// gradient must be ready. Throws as `wait()` does; `wait()` still has to end the step.
  BucketInfo wait(std::size_t i);
  /// Only if the exchange ends with gradients: waits for the next bucket in the order of exchange and returns it, so
  /// that its gradients can be used while later buckets are in progress; nullopt when all have been returned. Every
  /// gradient must be ready. Throws as `wait()` does; `wait()` still has to end the step.
  [[nodiscard]] std::optional<BucketInfo> next_bucket();
  /// While on, `ready` has no effect, so that the gradients of several micro-batches add up before they are exchanged.
  void accumulate(bool on);

  /// Buckets in the order of exchange: those of the last completed step; before the first step the planned ones. A
  /// policy that decides during the step plans none.
  [[nodiscard]] std::vector<BucketInfo> buckets() const;
  [[nodiscard]] StepStatistics statistics() const noexcept;
  /// By gradient. Call it between steps.
  [[nodiscard]] std::vector<SentShare> sent_shares() const;

  /// Discards what the last step changed in the codec's state: the next step starts from the same state, because the
  /// caller does not apply the averages. Every rank calls it, between steps, once per step. Not needed after a step
  /// with a value that is not finite on any rank (an average, or what a codec keeps): the ranks agree that it changes
  /// no state.
  void discard_step();
  /// The codec's state after the last step that ended without an error; it differs from rank to rank. Call it between
  /// steps.
  [[nodiscard]] SavedCodecState save() const;
  /// Loads a state that this rank saved, in a group of the same size, with the same codec and gradients; otherwise
  /// throws Misuse.
  /// The codec's parameters and its warm-up may differ.
  void restore(const SavedCodecState& saved);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Broadcasts the root's parameters, buffers or optimizer state to every rank. All ranks pass buffers of equal shapes.
void broadcast_all(Group& group, std::span<const Buffer> buffers, int root = 0);

}  // namespace syncopate
