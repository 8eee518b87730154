// Evaluation: the loss, the accuracy and the top-5 accuracy of a network on held-out samples.
#pragma once

#include "record/rows.hpp"
#include "run.hpp"
#include "training_state.hpp"

namespace syncopate::train {

/// Evaluates the network; each rank evaluates a part of the samples. A collective; no exchange may be under way.
/// `resolution` is the part's, in pixels.
[[nodiscard]] Evaluation evaluate(const Run& run, const TrainingState& state, int resolution);

}  // namespace syncopate::train
