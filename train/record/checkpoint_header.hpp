// The header of a checkpoint: what a run is beside its numbers, as JSON; the numbers' bytes must be those that it says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model.hpp"
#include "syncopate/input.hpp"

namespace syncopate::train {

/// What a run is beside its tensors.
struct RunState {
  std::string model;
  ModelOptions sizes;
  std::uint64_t seed = 1;
  std::uint64_t training_samples = 0;
  input::Progress progress;
};

struct CheckpointHeader {
  RunState state;
  std::uint64_t parameters = 0, buffers = 0;  ///< f32 each
  std::string optimizer;
  std::vector<std::string> kept;    ///< names of what the optimizer keeps, each as long as the parameters
  std::vector<std::string> layout;  ///< "name:elements" of each parameter, then of each buffer
};

[[nodiscard]] std::string text_of(const CheckpointHeader& header);
/// Throws Corrupt for what `text_of` does not write, and if parameters, what is kept and buffers together have another
/// number of bytes than `number_bytes`.
[[nodiscard]] CheckpointHeader parse_checkpoint_header(std::string_view text, std::uint64_t number_bytes);

}  // namespace syncopate::train
