// The sentence: what happens to one bucket in one step.
#pragma once

#include <functional>

#include "sync/bucket.hpp"
#include "sync/weight_updater.hpp"

namespace syncopate::sync {

/// The context of a step: everything that `step` needs besides the bucket.
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

/// Combines one bucket over all ranks, and updates its weights if the exchange ends with weights. Returns the time, by
/// `clock_s`, at which it was combined. Runs on: the communication thread.
double step(Bucket& bucket, const StepContext& context, const std::function<double()>& clock_s);

/// Completes the weights of one bucket after every bucket has been through `step`, and sends them where the exchange
/// does so in this step. Runs on: the communication thread.
void deliver(Bucket& bucket, const StepContext& context);

}  // namespace syncopate::sync
