// A profile: what the passes of a model take, layer by layer, while nothing is exchanged.
#pragma once

#include "options.hpp"
#include "syncopate/group.hpp"

namespace syncopate::train {

/// Trains on a made-up batch, every rank of the group at the same time and alone, for a few steps and then
/// `options.steps`; rank 0 writes the medians of its own to `options.profile`, in the format that `syncopate plan`
/// reads. Throws Misuse (unknown model), SystemFailure (the file cannot be written).
void write_profile(Group& group, const Options& options);

}  // namespace syncopate::train
