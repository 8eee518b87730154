// The sentence: what happens to one bucket in one step.
#pragma once

#include "sync/bucket.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync {

/// Combines one bucket over all ranks. Runs on: the communication thread.
Outcome step(Bucket& bucket, const Exchange& exchange, Group& group, const std::string& algorithm);

}  // namespace syncopate::sync
