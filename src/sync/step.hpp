// The sentence: what happens to one bucket in one step.
#pragma once

#include <functional>

#include "sync/bucket.hpp"
#include "sync/exchange.hpp"
#include "sync/optimizer.hpp"

namespace syncopate::sync {

/// How a step is done: what the sentence takes for granted.
struct Way {
  const Exchange& exchange;
  Group& group;
  const std::string& algorithm;
  Optimizer& optimizer;
  Trace* trace = nullptr;
};

/// Combines one bucket over all ranks; updates its weights where the exchange ends in weights. Returns when, by
/// `clock_s`, it was combined. Runs on: the communication thread.
double step(Bucket& bucket, const Way& way, const std::function<double()>& clock_s);

/// The weights of one bucket, once all buckets have been through `step`: final, and spread if it is time for it.
/// Runs on: the communication thread.
void deliver(Bucket& bucket, const Way& way);

}  // namespace syncopate::sync
