// Code that synchronizers and combiners share for Python: gradients, feedback, and a codec's saved state.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "array.hpp"
#include "component/catalogue.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::bind {

/// Feedback as Python gives it. The kind is parsed when it is used, as one that is given without a Feedback.
struct Feedback {
  std::string kind = "auto";
  FeedbackOptions rest{};

  [[nodiscard]] FeedbackOptions options() const {
    FeedbackOptions all = rest;
    all.kind = feedback_named(kind);
    return all;
  }
};

/// A Feedback, or only its kind.
using FeedbackGiven = std::variant<std::string, Feedback>;

/// The keyword arguments of Python that CodingOptions are made of.
struct CodingGiven {
  Given<PythonCodec> codec;
  FeedbackGiven feedback;
  std::size_t dense_below;
  std::uint64_t seed;

  [[nodiscard]] CodingOptions options(CatalogueChosen& catalogue) const {
    const auto* const kind = std::get_if<std::string>(&feedback);
    const Feedback chosen = kind != nullptr ? Feedback{*kind} : std::get<Feedback>(feedback);
    return {catalogue.name(codec), chosen.options(), dense_below, seed};
  }
};

/// A function with the arguments of `f` but its first, which are followed by those of CodingGiven.
template <class Result, class... Args>
auto with_coding(Result (*f)(const CodingGiven&, Args...)) {
  return [f](Args... args, const Given<PythonCodec>& codec, const FeedbackGiven& feedback, std::size_t dense_below,
             std::uint64_t seed) -> Result {
    return f({codec, feedback, dense_below, seed}, std::forward<Args>(args)...);
  };
}

/// `define(f, names..., the names and defaults of the coding)`.
template <class Define, class Function>
auto define_with_coding(const Define& define, Function* f) {
  using namespace nb::literals;
  const CodingOptions usual;
  return define(with_coding(f), "codec"_a = usual.codec, "feedback"_a = Feedback{}.kind,
                "dense_below"_a = usual.dense_below, "seed"_a = usual.seed);
}

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
