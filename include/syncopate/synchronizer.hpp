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

#include "syncopate/cluster.hpp"
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
  std::size_t rows = 0;  ///< of the tensor as a matrix, for codecs that use it; 0: a vector of `elements` rows
  std::string codec{};   ///< its own; empty: SynchronizerOptions::codec
};

/// Who applies the combined gradients to the weights. The exchange determines it.
enum class Updater : std::uint8_t {
  caller,      ///< the caller, after `wait`: the exchange ends with gradients
  every_rank,  ///< the synchronizer calls `SynchronizerOptions::update` on every rank: the exchange ends with weights
  root,        ///< the same on rank 0 only, which holds the optimizer's state; the other ranks receive its weights
  shards,      ///< the same on every rank, for its shards alone (optimizer.hpp); all ranks get all weights
  servers,     ///< servers, or each worker by itself (server.hpp); no synchronizer takes part
};
[[nodiscard]] Updater updater_of(std::string_view exchange);  ///< throws Misuse, naming the allowed names

/// What becomes of the elements that a codec leaves out of a packet.
struct FeedbackOptions {
  /// "none": they are lost; "residual": they are added to the next gradient; "momentum": momentum correction (Lin et
  /// al., ICLR 2018), in which the synchronizer accumulates the momentum of every gradient, so that the optimizer must
  /// add none; "auto": residual with the codecs for which it is sound, else none.
  std::string kind = "auto";
  double momentum = 0.9;  ///< momentum only: the factor, above 0 and below 1
  bool nesterov = false;  ///< momentum only
  double clip_norm = 0;   ///< > 0, not with "none": scale every local gradient that is coded to this L2 norm at most
  double warmup_density = 0;       ///< sparse codecs: the density falls from this one to the codec's own...
  std::uint64_t warmup_steps = 0;  ///< ...during so many steps, by equal ratios; 0: no warm-up
};

struct SynchronizerOptions {
  /// A name from shelf schedule/policy. Policies that weigh times (mg_wfbp, exact_dp) first measure for nine steps
  /// under temporary partitions; then rank 0 plans, and every rank adopts its plan.
  std::string policy = "fusion";
  std::optional<ExchangeCost> cost;  ///< of exchanges, for policies that weigh it; empty: measured
  /// Policies that weigh times: steps between checks for drift; 0: never check. If times have changed by more than a
  /// fifth, the ranks measure and plan again, and then check half as often.
  int check_every = 32;
  std::size_t fusion_bytes = 0;        ///< size at which the fusion policy closes a bucket; 0: by model and ranks
  std::string codec = "none";          ///< a name from shelf compress/codec, with its parameter: "name:parameter"
  FeedbackOptions feedback;            ///< of the codec
  std::size_t dense_below = 4096;      ///< smaller gradients are sent as they are, unless the codec only rounds
  std::string exchange = "allreduce";  ///< a name from shelf sync/exchange
  std::string algorithm = "auto";      ///< collective algorithm
  bool zero_missing = false;           ///< a gradient that never became ready counts as zero; otherwise it is an error
  double clip_norm = 0;    ///< > 0: scale the averaged gradients so that their global L2 norm is at most this
  std::uint64_t seed = 0;  ///< of codecs that use random numbers
  /// With more than one processor a thread encodes the next bucket and decodes the last one while the present one
  /// travels. Off: the communication thread does both in turn, for comparison; the same results bit for bit.
  bool code_ahead = true;
  /// Receives a span per bucket and per wait, and a span per planned bucket once steps are predicted. Must outlive the
  /// synchronizer.
  Trace* trace = nullptr;
  std::function<double()> clock_s;  ///< for all measured times, from any thread; empty: the monotonic clock

  /// The weights of gradient i, with as many elements; initially equal on all ranks (`broadcast_all`). Exchanges that
  /// end with weights need them, and read and write them from the last `ready(i)` of a step until `wait(i)` returns; so
  /// do codecs that weigh gradients by them (importance), which read weights of f32, f16 or bf16 in that time. Others
  /// ignore them.
  std::vector<Buffer> weights;

  // Only for exchanges that end with weights, which need it; other exchanges refuse it.

  /// Applies the averaged gradients [first, last] to their weights, and sets the gradients to what the next step adds
  /// to (usually zero). With exchange "sharded" only this rank's shards hold averages. Runs on: the communication
  /// thread, for one bucket at a time.
  std::function<void(std::size_t first, std::size_t last)> update;
  int broadcast_every = 5;  ///< exchange allreduce_broadcast: steps between broadcasts of rank 0's weights
};

/// The law of the exchange and the codec of these options for these gradients, if `ranks` ranks take part of which
/// `ranks_per_host` share a host; coding times are those of `cluster`, 0 where it does not know them. Throws Misuse.
[[nodiscard]] ExchangeLaw exchange_law(std::span<const Gradient> gradients, const SynchronizerOptions& options,
                                       const Cluster& cluster);

/// "auto:A+B+none" as the codecs among which a choice is allowed; any other text as the only one.
[[nodiscard]] std::vector<std::string> codec_ways(std::string_view text);

/// The codec of one bucket of a partition, and what its exchange is predicted to take with each way.
struct CodecChoice {
  std::size_t first = 0, last = 0;  ///< gradients
  std::uint64_t bytes = 0;
  std::vector<double> predicted_s;  ///< by way
  std::size_t way = 0;              ///< the cheapest; of equal ones the first
};
/// What an exchange of up to `bytes` bytes costs by a law, as `exchange_cost` (predict.hpp) tells for a cluster.
using ExchangeCostOf = std::function<ExchangeCost(const ExchangeLaw& law, std::uint64_t bytes)>;
/// For every bucket of these options' policy, in forward order, the cheapest of codec_ways(options.codec). Throws
/// Misuse as exchange_law does, for a policy that weighs times, and for a way whose coding the cluster does not know.
[[nodiscard]] std::vector<CodecChoice> choose_codecs(std::span<const Gradient> gradients,
                                                     const SynchronizerOptions& options, const Cluster& cluster,
                                                     const ExchangeCostOf& cost_of);

/// Costs of the last step.
struct StepStatistics {
  std::uint64_t wire_bytes = 0;  ///< sent by this rank, headers included
  double wait_s = 0;             ///< time `wait` blocked its caller
  double gradient_norm = 0;      ///< global L2 norm before clipping; 0 without clip_norm, and where no update runs
  double predicted_s = 0;        ///< the step's time, predicted before it began; 0: not predicted yet
  bool measuring = false;        ///< the step ran under a temporary partition that serves to measure
};

/// A codec's state between steps on this rank (residuals, momenta), by gradient: for checkpoints.
struct SavedCodecState {
  std::string codec;  ///< with its parameter
  std::uint64_t steps = 0;
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
  /// An exchange that is in progress ends first: with its result, or with an error after the group's timeout at the
  /// latest.
  ~Synchronizer();
  Synchronizer(const Synchronizer&) = delete;
  Synchronizer& operator=(const Synchronizer&) = delete;

  /// The memory of gradient i: initially zero, valid as long as the synchronizer, and as long as `memory` is held.
  [[nodiscard]] Buffer gradient(std::size_t i) const;
  /// The memory of all gradients, for those who use it longer than the synchronizer lives.
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

  /// The codec's state after the last step that ended without an error; it differs from rank to rank. Call it between
  /// steps. `restore` loads it into a synchronizer with the same codec, gradients and ranks; throws Misuse.
  /// After an infinite gradient, for example, when the caller skips the update: the next step starts as the last one
  /// did. Every rank calls it, between steps, once per step.
  void discard_step();
  [[nodiscard]] SavedCodecState save() const;
  void restore(const SavedCodecState& saved);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Broadcasts the root's parameters, buffers or optimizer state to every rank. All ranks pass buffers of equal shapes.
void broadcast_all(Group& group, std::span<const Buffer> buffers, int root = 0);

}  // namespace syncopate
