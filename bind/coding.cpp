// Gradients, feedback, a codec's saved state, and the choice among codecs for Python.
#include "coding.hpp"

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>

#include "syncopate/tooling/settings.hpp"

namespace syncopate::bind {

using namespace nb::literals;

namespace {

/// Every value of a Feedback, for pickles and comparisons.
using FeedbackValues = std::tuple<std::string, double, bool, double, double, std::uint64_t>;

FeedbackValues values_of(const Feedback& feedback) {
  const FeedbackOptions& rest = feedback.rest;
  return {feedback.kind, rest.momentum, rest.nesterov, rest.clip_norm, rest.warmup_density, rest.warmup_steps};
}

void make_feedback(Feedback& self, const FeedbackValues& values) {
  const auto& [kind, momentum, nesterov, clip_norm, warmup_density, warmup_steps] = values;
  new (&self) Feedback{kind, {{}, momentum, nesterov, clip_norm, warmup_density, warmup_steps}};
}

void bind_codec_choice(nb::module_& module) {
  module.def("auto_codecs", auto_codecs, "codec"_a,
             "A and B of \"auto:A+B\"; nothing of other texts. Raises Misuse if a name is empty or repeated.");
  module.def(
      "quickest_way", quickest_way, "ways"_a, "seconds"_a, "at_least"_a,
      "Index of the codec with the shortest time; of \"none\" if no other saves the share `at_least` of its time.");
  module.def("exchanges_end_s", exchanges_end_s, "ready_s"_a, "cost_s"_a,
             "When the last exchange ends, if each begins when its bucket is ready and those before it have ended.");
}

}  // namespace

std::vector<Gradient> gradients_of(const std::vector<Tensor>& tensors) {
  std::vector<Gradient> gradients;
  for (const Tensor& tensor : tensors) {
    const auto& lengths = tensor.shape.lengths;
    gradients.push_back({.name = tensor.name,
                         .elements = tensor.shape.elements(),
                         .dtype = tensor.shape.dtype,
                         .rows = lengths.size() > 1 ? lengths.front() : 0});
  }
  return gradients;
}

nb::tuple saved_in_python(const SavedCodecState& state) {
  SavedGradients gradients;
  for (const auto& [name, bytes] : state.gradients) gradients.emplace_back(name, nb::bytes(bytes.data(), bytes.size()));
  return nb::make_tuple(state.codec, state.steps, state.rank, state.ranks, gradients);
}

SavedCodecState saved_of(const std::string& codec, std::uint64_t steps, int rank, int ranks,
                         const SavedGradients& gradients) {
  SavedCodecState state{codec, steps, rank, ranks};
  for (const auto& [name, bytes] : gradients) {
    const auto* const begin = static_cast<const std::byte*>(bytes.data());
    state.gradients.emplace_back(name, std::vector<std::byte>(begin, begin + bytes.size()));
  }
  return state;
}

void bind_coding(nb::module_& module) {
  module.def(
      "coding_settings",
      [] {
        std::map<std::string, std::map<std::string, std::string>> all;
        for (const auto& setting : coding_settings())
          all[std::string(setting.name)] = {{"allowed", std::string(setting.values)},
                                            {"default", setting.text({})},
                                            {"meaning", std::string(setting.meaning)}};
        return all;
      },
      "The settings of codecs and their feedback by name, each with what is allowed, its default and its meaning.");
  bind_codec_choice(module);
  nb::class_<Tensor>(module, "Gradient", "One gradient tensor: a unique name, its shape, and its type (\"f32\" ...).")
      .def(
          "__init__",
          [](Tensor* self, const std::string& name, nb::handle shape, const std::string& dtype) {
            new (self) Tensor{name, shape_of(shape, dtype)};
          },
          "name"_a, "shape"_a, "dtype"_a = "f32")
      .def_ro("name", &Tensor::name)
      .def_prop_ro("shape", [](const Tensor& self) { return nb::tuple(nb::cast(self.shape.lengths)); });
  nb::class_<Feedback>(
      module, "Feedback",
      "Treatment of the elements that a codec leaves out of a packet. kind: \"none\": they are lost; \"residual\": "
      "they are added to the next gradient; \"momentum\": momentum correction, in which the synchronizer accumulates "
      "the momentum and the optimizer must add none; \"auto\": residual where it is sound. clip_norm > 0 scales every "
      "local gradient that is coded to this L2 norm at most. The density of a sparse codec falls from warmup_density "
      "during warmup_steps.")
      .def(
          "__init__",
          [](Feedback* self, const std::string& kind, double momentum, bool nesterov, double clip_norm,
             double warmup_density, std::uint64_t warmup_steps) {
            make_feedback(*self, {kind, momentum, nesterov, clip_norm, warmup_density, warmup_steps});
          },
          "kind"_a = "auto", nb::kw_only(), "momentum"_a = 0.9, "nesterov"_a = false, "clip_norm"_a = 0.0,
          "warmup_density"_a = 0.0, "warmup_steps"_a = 0)
      .def_ro("kind", &Feedback::kind)
      .def(
          "__eq__", [](const Feedback& self, const Feedback& other) { return values_of(self) == values_of(other); },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__getstate__", values_of)
      .def("__setstate__", make_feedback)
      .def("__repr__", [](const Feedback& self) { return "Feedback('" + self.kind + "')"; });
}

}  // namespace syncopate::bind
