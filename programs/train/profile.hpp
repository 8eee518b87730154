// A profile: times of the passes of a model by layer, without exchanges.
#pragma once

#include "options.hpp"
#include "syncopate/group.hpp"

namespace syncopate::train {

/// Trains on a synthetic batch, on every rank at the same time and without exchanges: a few steps to warm up, then
/// `options.steps`. Rank 0 writes the medians of its times to `options.profile`, in the format that `syncopate plan`
/// reads. Throws Misuse (unknown model), SystemFailure (the file cannot be written).
void write_profile(Group& group, const Options& options);

}  // namespace syncopate::train
