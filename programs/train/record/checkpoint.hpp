// Checkpoints: the complete state of a run in one file, which is loaded completely or not at all.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "network/network.hpp"
#include "record/checkpoint_header.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::train {

/// State of an optimizer by name: f32 vectors, each as long as the parameters.
struct Kept {
  std::string optimizer;
  std::vector<std::pair<std::string, at::Tensor>> state;
};
[[nodiscard]] Kept kept_by(Optimizer& optimizer);  ///< views of its state
/// Throws Misuse if the state is of another optimizer.
void restore(Optimizer& optimizer, const Kept& kept);

struct Checkpoint {
  RunState state;
  std::vector<std::string> layout;  ///< "name:elements" of each parameter, then of each buffer
  at::Tensor parameters, buffers;   ///< f32, one dimension each
  Kept kept;
};

[[nodiscard]] std::vector<std::string> layout_of(const Network& network);

/// Replaces the file atomically (sealed_file.hpp). Throws SystemFailure; the old file then remains.
void save_checkpoint(const std::string& file, const Checkpoint& checkpoint);
/// Throws SystemFailure (cannot read), Corrupt (not a checkpoint, truncated, or changed).
[[nodiscard]] Checkpoint load_checkpoint(const std::string& file);
/// Throws Misuse if the checkpoint is of another model, size or data set than the run.
void require_fits(const Checkpoint& checkpoint, const RunState& run, const Network& network);

}  // namespace syncopate::train
