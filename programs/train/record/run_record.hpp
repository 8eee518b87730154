// The record of a run: the content of run.json.
#pragma once

#include "record/rows.hpp"
#include "run.hpp"
#include "training_state.hpp"
#include "update/descent.hpp"

namespace syncopate::train {

[[nodiscard]] Json run_record(const Run& run, const TrainingState& state, const Part& part, const Descent& descent);

}  // namespace syncopate::train
