// Inception-v4 as TF-slim trains it: normalisations without scales, and an extra background class.
#include <string_view>

#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

extern const Architecture inception_v4;

namespace {

constexpr std::uint64_t kClasses = 1000;

std::vector<Tensor> tensors() {
  std::vector<Tensor> kept;
  for (Tensor tensor : inception_v4.tensors()) {
    const std::string_view name = tensor.name;
    if (name.ends_with(".bn.weight")) continue;
    if (name.starts_with("last_linear.")) {
      tensor.elements += tensor.elements / kClasses;
      tensor.flops += tensor.flops / kClasses;
    }
    kept.push_back(std::move(tensor));
  }
  return kept;
}

}  // namespace

extern constinit const Architecture inception_v4_slim{
    .name = "inception_v4_slim",
    .summary =
        "Inception-v4 of TF-slim: 42 649 769 parameters in 300 tensors, normalisations without scales, 1001 classes",
    .source = "tensorflow/models, research/slim/nets/inception_v4.py",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
