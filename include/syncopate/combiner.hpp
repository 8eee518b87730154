// The combiner: averages gradients in memory of the caller's, bucket by bucket, as a synchronizer does with its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {

/// Where one of a combiner's gradients lies: as many elements of the same type.
struct PlacedGradient {
  std::size_t gradient = 0;  ///< its index among the combiner's gradients
  Buffer values;
};

/// For frameworks that own the gradients' memory and decide which gradients travel together, as PyTorch's
/// DistributedDataParallel does. What a codec keeps between steps belongs to gradients, so that both may change from
/// step to step. Every rank passes the same gradients and options, and in each step the same buckets in the same order.
/// Used from one thread at a time; the group must have no other operations on another thread meanwhile, because ranks
/// would disagree on their order (`Group::split` gives one that has none).
class Combiner final {
 public:
  /// Of the options, codec, feedback, dense_below, exchange, algorithm, seed, weights and trace count; `exchange` ends
  /// with gradients, and `clip_norm` and `zero_missing` are off, for they need all gradients. Throws as Synchronizer
  /// does.
  Combiner(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options = {});
  ~Combiner();
  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  /// Returns when these gradients hold their average over the ranks. Throws Misuse for a gradient that the step has
  /// had, or whose values do not fit, and what the exchange throws; an error that the other ranks cannot know of aborts
  /// the group with its text.
  void combine(std::span<const PlacedGradient> bucket);
  /// Ends a step: what its buckets left in the codec's state counts from now on. Gradients that the step did not have
  /// keep their state. Throws Misuse after an error of `combine`, and the state is as before the step.
  void end_step();
  /// As Synchronizer::discard_step, save and restore; between steps.
  void discard_step();
  [[nodiscard]] SavedCodecState save() const;
  void restore(const SavedCodecState& saved);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
