// The flow of one bucket in one step, and its phases, which two threads share.
#pragma once

#include <functional>

#include "sync/bucket.hpp"
#include "sync/weight_updater.hpp"

namespace syncopate::sync {

/// Everything that the phases of all buckets use.
struct StepContext {
  const Exchange& exchange;
  Group& group;
  const std::string& algorithm;
  const RowShare& share;
  const Cut& cut;
  const std::vector<compress::Settings>& codecs;  ///< of every gradient
  CodecState& state;
  CodecReports& reports;
  WeightUpdater& updater;
  Trace* trace = nullptr;
};

/// The flow of a gradient: narrow, encode, combine until the codec is done, decode, widen, apply. Calls `averaged`, if
/// it is set, when the gradients hold their average, before the update.
/// Runs on: the communication thread, or the combiner's caller.
void run_bucket(Bucket& bucket, const StepContext& context, const std::function<void()>& averaged = {});

// The phases of run_bucket, for two threads that share the work. Unless the exchange narrows, `prepare` and `complete`
// need no other rank and may run on another thread, at the same time as another bucket's `combine`.

/// Narrows the gradients if the exchange does, and gets the first rounds from the codec.
void prepare(Bucket& bucket, const StepContext& context);
/// Answers all rounds; an answer that ends the conversation is left to `complete`.
void combine(Bucket& bucket, const StepContext& context);
/// Decodes the last answers and widens: the gradients hold their average.
void complete(Bucket& bucket, const StepContext& context);

/// After every bucket is combined and applied: completes the weights of one bucket and sends them, where the exchange
/// does so in this step. Runs on: the communication thread.
void deliver(Bucket& bucket, const StepContext& context);

}  // namespace syncopate::sync
