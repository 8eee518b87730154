// Code that synchronizers and combiners share for Python: gradients, feedback, and a codec's saved state.
#pragma once

#include <nanobind/stl/pair.h>

#include <string>
#include <utility>
#include <vector>

#include "array.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::bind {

/// Feedback as Python gives it. The kind is parsed when it is used, because nanobind turns the Misuse of an implicit
/// conversion into a TypeError.
struct Feedback {
  std::string kind = "auto";
  FeedbackOptions rest{};

  [[nodiscard]] FeedbackOptions options() const {
    FeedbackOptions all = rest;
    all.kind = feedback_named(kind);
    return all;
  }
};

/// One gradient tensor, with the shape that its array has.
struct Tensor {
  std::string name;
  Shape shape;
};

/// As matrices whose rows are the first dimension.
[[nodiscard]] std::vector<Gradient> gradients_of(const std::vector<Tensor>& tensors);

using SavedGradients = std::vector<std::pair<std::string, nb::bytes>>;
[[nodiscard]] nb::tuple saved_in_python(const SavedCodecState& state);
[[nodiscard]] SavedCodecState saved_of(const std::string& codec, std::uint64_t steps, int rank, int ranks,
                                       const SavedGradients& gradients);

inline constexpr const char* kSaveDoc =
    "The codec's state of this rank after the last step, as (codec, steps, rank, ranks, [(gradient, bytes)]), for "
    "checkpoints.";
inline constexpr const char* kRestoreDoc =
    "Load what `save` returned on this rank, in a group of the same size: `restore(*saved)`.";

}  // namespace syncopate::bind
