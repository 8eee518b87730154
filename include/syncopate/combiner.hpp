// The combiner: averages gradients in the caller's memory, bucket by bucket.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "syncopate/catalogue.hpp"
#include "syncopate/coding.hpp"
#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {

struct CombinerOptions {
  Catalogue catalogue{};  ///< where codecs are looked up; every rank needs the same entries
  CodingOptions coding{};
  std::string exchange = "allreduce";  ///< a name from shelf sync/exchange, which ends with gradients
  std::string algorithm = "auto";      ///< collective algorithm
  /// weights[i]: the weights of gradient i, for codecs that weigh gradients by them (importance); others ignore them.
  std::vector<Buffer> weights{};
  Trace* trace = nullptr;  ///< receives a span per bucket; must outlive the combiner
};

/// The memory of one gradient; the count equals the gradient's, and so does the type, or it is Combiner::casts_to.
struct PlacedGradient {
  std::size_t gradient = 0;  ///< its index among the combiner's gradients
  Buffer values;
};

/// For frameworks that own the gradients' memory and choose the buckets, as PyTorch's DistributedDataParallel does.
/// Codec state belongs to gradients, so memory and buckets may change from step to step. Every rank passes the same
/// gradients and options, and in each step the same buckets in the same order. Used by one thread at a time, but for
/// the phases of two buckets. Meanwhile no other thread may start operations of the group, because ranks would disagree
/// on their order; `Group::split` returns a group without other operations.
class Combiner final {
 public:
  /// Throws as Synchronizer does.
  Combiner(Group& group, std::vector<Gradient> gradients, const CombinerOptions& options = {});
  ~Combiner();
  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  /// Returns when these gradients hold their average over the ranks. Throws Misuse for a gradient that this step has
  /// already combined, or whose count or type differs; also throws what the exchange throws. An error that the other
  /// ranks cannot detect aborts the group with its text.
  void combine(std::span<const PlacedGradient> bucket);

  /// The type to which the codec rounds f32 and does nothing else: values of f32 gradients may come in it, rounded to
  /// nearest even, and then hold the average that f32 values would have, before its exact conversion to f32. Unset
  /// for other codecs, and where an exchange adds before the codec rounds.
  [[nodiscard]] std::optional<DType> casts_to() const noexcept;

  // The phases of `combine`, for a caller with two threads: buckets pass all three in the same order, one thread calls
  // `encode` and `decode`, the other `exchange`, and the gradients' memory stays until `decode` has returned. Each
  // takes the oldest bucket that has passed the phase before, and throws Misuse if there is none, or as `combine` does.

  void encode(std::span<const PlacedGradient> bucket);
  void exchange();
  void decode();
  /// Whether a second thread shortens steps: there is a codec and a second processor, and encoding needs no other rank.
  [[nodiscard]] bool codes_ahead() const noexcept;

  /// Ends a step. Its codec state counts, unless a value on any rank is not finite: with codecs that keep state the
  /// ranks agree on it, so this is a collective. Gradients that the step did not combine keep their state. After an
  /// error of `combine` it throws Misuse, and the state is as before the step.
  void end_step();
  /// See Synchronizer::discard_step, save and restore. Call them between steps.
  void discard_step();
  [[nodiscard]] SavedCodecState save() const;
  void restore(const SavedCodecState& saved);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
