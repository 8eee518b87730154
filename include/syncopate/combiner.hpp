// The combiner: averages gradients in the caller's memory, bucket by bucket.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
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

/// How a bucket has ended.
struct CombinedBucket {
  std::exception_ptr error;  ///< null: the gradients hold their average
  /// In seconds of the monotonic clock (CLOCK_MONOTONIC).
  struct Phase {
    const char* name;  ///< "encode", "exchange" or "decode"
    double begin_s;
    double end_s;
  };
  /// In order; only "exchange", which then contains all, without a codec and where encoding needs other ranks.
  std::vector<Phase> phases{};
};

/// Calls and properties of a bucket of `Combiner::start`. Both functions may be empty; they are called on a thread of
/// the combiner, without a lock, and destroyed there before `Combiner::wait` returns.
struct BucketCalls {
  /// Returns when the gradients have their values, as after a copy from a device. Nothing reads them before. Not called
  /// after an error.
  std::function<void()> arrive{};
  /// Called once, in the order of `start`. An exception of it is an error of the combiner, as one of an exchange is.
  std::function<void(const CombinedBucket&)> ended{};
  /// Whether the step ends with this bucket, as by `end_step`, before `ended` is called.
  bool ends_step = false;
};

/// For frameworks that own the gradients' memory and choose the buckets, as PyTorch's DistributedDataParallel does.
/// Codec state belongs to gradients, so memory and buckets may change from step to step. Every rank passes the same
/// gradients and options, and in each step the same buckets in the same order. Used by one thread at a time. Meanwhile
/// no other thread may start operations of the group, because ranks would disagree on their order; `Group::split`
/// returns a group without other operations.
///
/// All functions but `start` and `casts_to` first wait until the buckets that were started have ended. Within calls of
/// a bucket they throw Misuse.
class Combiner final {
 public:
  /// Throws as Synchronizer does.
  Combiner(Group& group, std::vector<Gradient> gradients, const CombinerOptions& options = {});
  /// Buckets that were started end first, in the group's timeout at the latest. Not within calls of a bucket.
  ~Combiner();
  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  /// Returns when these gradients hold their average over the ranks. Throws Misuse for a gradient that this step has
  /// already combined, or whose count or type differs; also throws what the exchange throws. An error that the other
  /// ranks cannot detect aborts the group with its text.
  void combine(std::span<const PlacedGradient> bucket);

  /// As `combine`, but returns at once, and `ended` gets the error. The gradients' memory stays until then. With a
  /// codec and a second processor the next buckets are encoded and the last ones decoded while one is exchanged. After
  /// an error every bucket that has not ended ends with it. An empty bucket passes in its turn. The first call begins
  /// the threads; throws SystemFailure if there can be none.
  void start(std::vector<PlacedGradient> bucket, BucketCalls calls = {});
  /// Returns when every bucket that was started has ended.
  void wait() const;
  /// As `wait`, for `bound` at most. Returns whether they have ended.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds bound) const;
  /// Whether this is a thread of the combiner, as within calls of a bucket.
  [[nodiscard]] bool is_own_thread() const noexcept;

  /// The type to which the codec rounds f32 and does nothing else: values of f32 gradients may come in it, rounded to
  /// nearest even, and then hold the average that f32 values would have, before its exact conversion to f32. Unset
  /// for other codecs, and where an exchange adds before the codec rounds.
  [[nodiscard]] std::optional<DType> casts_to() const noexcept;

  /// Ends a step. Its codec state counts, unless a value on any rank is not finite: with codecs that keep state the
  /// ranks agree on it, so this is a collective. Gradients that the step did not combine keep their state. After an
  /// error of a bucket it throws Misuse, and the state is as before the step.
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
