// Checkpoints: everything a run needs to go on, in one file that is either whole or refused.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "network/network.hpp"
#include "record/checkpoint_header.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::train {

/// What an optimizer keeps, by name: f32, each as long as the parameters.
struct Kept {
  std::string optimizer;
  std::vector<std::pair<std::string, at::Tensor>> state;
};
[[nodiscard]] Kept kept_by(Optimizer& optimizer);  ///< views of its state
/// Throws Misuse where another optimizer kept it.
void restore(Optimizer& optimizer, const Kept& kept);

struct Checkpoint {
  RunState state;
  std::vector<std::string> layout;  ///< "name:elements" of each parameter, then of each buffer
  at::Tensor parameters, buffers;   ///< f32, one dimension each
  Kept kept;
};

[[nodiscard]] std::vector<std::string> layout_of(const Network& network);

/// Replaces the file as a whole (sealed_file.hpp). Throws SystemFailure; the old file is then still there.
void save_checkpoint(const std::string& file, const Checkpoint& checkpoint);
/// Throws SystemFailure (cannot read), Corrupt (no checkpoint, cut short, or changed).
[[nodiscard]] Checkpoint load_checkpoint(const std::string& file);
/// Throws Misuse where the checkpoint is of another model, size or data set than the run.
void require_fits(const Checkpoint& checkpoint, const RunState& run, const Network& network);

}  // namespace syncopate::train
