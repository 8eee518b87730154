// The header of a checkpoint: the state of a run without its tensors, as JSON. It states the size of the tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model.hpp"
#include "syncopate/input.hpp"

namespace syncopate::train {

/// The state of a run without its tensors.
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
  std::vector<std::string> kept;    ///< names of the vectors of the optimizer, each as long as the parameters
  std::vector<std::string> layout;  ///< "name:elements" of each parameter, then of each buffer
};

[[nodiscard]] std::string text_of(const CheckpointHeader& header);
/// Throws Corrupt for text that `text_of` does not write, and if parameters, optimizer state and buffers together do
/// not take `number_bytes` bytes.
[[nodiscard]] CheckpointHeader parse_checkpoint_header(std::string_view text, std::uint64_t number_bytes);

}  // namespace syncopate::train
