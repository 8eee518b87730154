// The state that training changes: the position and the network. At the start every rank has rank 0's.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "network/network.hpp"
#include "record/checkpoint.hpp"
#include "run.hpp"
#include "syncopate/input.hpp"

namespace syncopate::train {

struct TrainingState {
  std::uint64_t seed = 1;
  input::Progress progress;
  bool resumed = false;  ///< from a checkpoint
  Network network;
  at::Tensor parameters, buffers;  ///< all of the network's, each in one contiguous memory
  input::Order order;
};

/// Builds the network and copies rank 0's state to every rank. A collective. `checkpoint`: that of --resume, on rank 0
/// and on every worker. Throws Misuse if it is of another model, size or data set.
[[nodiscard]] TrainingState initial_state(const Run& run, const std::optional<Checkpoint>& checkpoint);

/// The part of the state that the header of a checkpoint holds.
[[nodiscard]] RunState run_state_of(const Run& run, const TrainingState& state);

/// Every rank gets the mean of all ranks' batch-norm statistics. A collective; no exchange may be under way.
void average_statistics(const Run& run, const TrainingState& state);

}  // namespace syncopate::train
