// The sentence: what happens to one bucket in one step.
#pragma once

#include <functional>

#include "sync/bucket.hpp"
#include "sync/weight_updater.hpp"

namespace syncopate::sync {

/// What the sentence takes for granted.
struct StepContext {
  const Exchange& exchange;
  Group& group;
  const std::string& algorithm;
  const Share& share;
  WeightUpdater& updater;
  CodecState& state;
  AnswerMemory& answers;
  Trace* trace = nullptr;
};

/// Combines one bucket over all ranks; updates its weights where the exchange ends in weights. Returns when, by
/// `clock_s`, it was combined. Runs on: the communication thread.
double step(Bucket& bucket, const StepContext& context, const std::function<double()>& clock_s);

/// The weights of one bucket, once all buckets have been through `step`: final, and spread if it is time for it.
/// Runs on: the communication thread.
void deliver(Bucket& bucket, const StepContext& context);

}  // namespace syncopate::sync
