// The sentence: what happens to one bucket in one step, in parts that two threads can share.
#pragma once

#include "sync/bucket.hpp"
#include "sync/weight_updater.hpp"

namespace syncopate::sync {

/// The context of a step: everything that `step` needs besides the bucket.
struct StepContext {
  const Exchange& exchange;
  Group& group;
  const std::string& algorithm;
  const Share& share;
  const Cut& cut;
  CodecState& state;
  Trace* trace = nullptr;
};

// Of one bucket, one after the other. `encode` and `decode` use no other rank, so they may run beside another bucket's
// `combine`, on a thread that has nothing else of the same bucket at that time.

/// Says the first rounds. Nothing where the exchange narrows gradients first: `combine` does it then.
void encode(Bucket& bucket, const StepContext& context);
/// Answers all rounds; a last answer that a coder foretold is left to `decode`. Runs on: the communication thread.
void combine(Bucket& bucket, const StepContext& context);
/// The gradients hold their average.
void decode(Bucket& bucket, const StepContext& context);

/// Completes the weights of one bucket after every bucket has been combined and the updater has applied it, and sends
/// them where the exchange does so in this step. Runs on: the communication thread.
void deliver(Bucket& bucket, const StepContext& context, WeightUpdater& updater);

}  // namespace syncopate::sync
