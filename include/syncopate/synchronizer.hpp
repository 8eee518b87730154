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

#include "syncopate/dtype.hpp"
#include "syncopate/group.hpp"
#include "syncopate/plan.hpp"
#include "syncopate/trace.hpp"

namespace syncopate {

/// One gradient tensor.
struct Gradient {
  std::string name;  ///< unique; randomness of codecs and saved state go by it
  std::size_t elements = 0;
  DType dtype = DType::f32;
  std::size_t rows = 0;  ///< of the tensor seen as a matrix, for codecs that do; 0: a vector, of `elements` rows
};

/// Who turns combined gradients into updated weights. It depends on the exchange.
enum class Updater : std::uint8_t {
  caller,      ///< the caller, after `wait`: the exchange ends in gradients
  every_rank,  ///< the synchronizer, by `SynchronizerOptions::update` on every rank: the exchange ends in weights
  root,        ///< the same on rank 0 alone, whose weights reach the others: only there is an optimizer's state
};
[[nodiscard]] Updater updater_of(std::string_view exchange);  ///< throws Misuse, naming the allowed names

struct SynchronizerOptions {
  /// A name from shelf schedule/policy. Those that weigh times (mg_wfbp, exact_dp) measure first: nine steps under
  /// partitions that only measure. Then rank 0 plans, and all follow.
  std::string policy = "fusion";
  std::optional<ExchangeCost> cost;  ///< of exchanges, for policies that weigh it; without: measured as well
  /// Policies that weigh times: steps between looks at whether times have drifted by more than a fifth, after which all
  /// is measured and planned again (and looked at half as often); 0: never.
  int check_every = 32;
  std::size_t fusion_bytes = 0;        ///< size at which the fusion policy closes a bucket; 0: by model and ranks
  std::string codec = "none";          ///< a name from shelf compress/codec, with its parameter: "name:parameter"
  std::string exchange = "allreduce";  ///< a name from shelf sync/exchange
  std::string algorithm = "auto";      ///< collective algorithm
  bool zero_missing = false;           ///< a gradient that never became ready counts as zero instead of an error
  double clip_norm = 0;                ///< > 0: scale the averaged gradient down to this global L2 norm
  std::uint64_t seed = 0;              ///< of codecs that draw
  /// Receives one span per bucket and wait and, once the step can be predicted, one per planned bucket; must outlive
  /// the synchronizer.
  Trace* trace = nullptr;
  std::function<double()> clock_s;  ///< what times are measured with, from any thread; empty: the machine's clock

  // Exchanges that end in weights need the next two; the others leave the update to the caller and refuse them.

  /// The weights of gradient i, as many elements; equal on all ranks at first (`broadcast_all`). From the last
  /// `ready(i)` of a step until `wait(i)` returns they are the synchronizer's to read and write.
  std::vector<Buffer> weights;
  /// Applies the averaged gradients [first, last] to their weights, and leaves in the gradients what the next step
  /// shall add to. Runs on: the communication thread, for one bucket at a time.
  std::function<void(std::size_t first, std::size_t last)> update;
  int broadcast_every = 5;  ///< exchange allreduce_broadcast: steps between broadcasts of rank 0's weights
};

/// What the last step cost.
struct StepStatistics {
  std::uint64_t wire_bytes = 0;  ///< sent by this rank, headers included
  double wait_s = 0;             ///< time `wait` blocked its caller
  double gradient_norm = 0;      ///< global norm before clipping; 0 unless clip_norm was given and this rank updates
  double predicted_s = 0;        ///< the step, predicted before it began; 0: not enough had been measured
  bool measuring = false;        ///< it ran under a partition that only measures, not under the policy's
};

/// What a codec keeps between steps on this rank (residuals, momenta), by gradient: for checkpoints.
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

/// Owns the gradients' memory (one arena per type, forward order) and averages it over the group's ranks.
/// One step is: backward pass calls `ready(i)` once for every gradient, from one or several threads; then `wait()`.
/// Every rank must pass the same list and options: what decides the result is compared, a difference is a Mismatch;
/// rank 0's policy and plan are used everywhere.
///
/// An exchange that ends in weights updates them while the backward pass still runs and brings them to every rank in
/// forward order. To overlap that with the next forward pass, call `wait(i)` before it uses the weights of gradient i,
/// and `wait()` after it, before the next backward pass; to have all weights at once, call `wait()` where a step ends.
/// In between, this thread must start no other operation of the group: ranks would disagree on its turn.
class Synchronizer final {
 public:
  /// `gradients` in forward order. Throws Misuse (unknown names, empty tensors, a type that the codec does not take, an
  /// algorithm that the exchange cannot use), Mismatch (ranks disagree).
  Synchronizer(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options = {});
  ~Synchronizer();
  Synchronizer(const Synchronizer&) = delete;
  Synchronizer& operator=(const Synchronizer&) = delete;

  /// Where gradient i must be written; zero at first, valid as long as the synchronizer.
  [[nodiscard]] Buffer gradient(std::size_t i) const;
  /// Gradient i is complete in its memory. Exchange of its bucket may start at once, on the group's thread.
  void ready(std::size_t i);
  /// Returns when every gradient holds the average, or every weight its new value. Throws Misuse naming a gradient that
  /// never became ready (every other rank throws RemoteFailure with the same text), or what the exchange threw.
  void wait();
  /// Returns when gradient i holds the average; every gradient from the first of its bucket on must be ready, because
  /// buckets leave in order, the last layers' first. Where the exchange ends in weights: when the weights of gradient i
  /// are the new ones; every gradient must be ready. Throws as `wait()` does, which still ends the step. Returns the
  /// bucket that gradient i travelled in.
  BucketInfo wait(std::size_t i);
  /// Where the exchange ends in gradients: waits for the next bucket in the order of their exchange and returns it, for
  /// its gradients to be used while later ones are under way; nullopt when all have been returned. Every gradient must
  /// be ready. Throws as `wait()` does, which still ends the step.
  [[nodiscard]] std::optional<BucketInfo> next_bucket();
  /// While on, `ready` is ignored: gradients of several micro-batches add up before the last one is exchanged.
  void accumulate(bool on);

  /// In the order of their exchange: those of the last step that ended, before the first those planned for it. A policy
  /// that decides while the step runs plans none.
  [[nodiscard]] std::vector<BucketInfo> buckets() const;
  [[nodiscard]] StepStatistics statistics() const noexcept;

  /// What the codec keeps, as of the last step that ended without an error; every rank has its own. Between steps only.
  /// `restore` takes it back in a synchronizer of the same codec, gradients and ranks; throws Misuse.
  [[nodiscard]] SavedCodecState save() const;
  void restore(const SavedCodecState& saved);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Parameters, buffers and optimizer state of rank 0 reach every rank. All ranks pass equally shaped buffers.
void broadcast_all(Group& group, std::span<const Buffer> buffers, int root = 0);

}  // namespace syncopate
