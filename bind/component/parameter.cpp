// The parameters of components: the text of their defaults, and the class Parameter.
#include "component/parameter.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

namespace syncopate::bind {

using namespace nb::literals;

ParameterList::ParameterList(std::vector<ComponentParameter> given) : given_(std::move(given)) {
  for (const ComponentParameter& each : given_) {
    usual_ += fmt::format("{}{:g}", usual_.empty() ? "" : ",", each.usual);
    limits_.push_back(
        {.name = each.name, .above = each.above, .most = each.most, .whole = each.whole, .or_zero = each.or_zero});
  }
}

void bind_parameter(nb::module_& module) {
  using State = std::tuple<std::string, double, double, double, bool, bool>;
  nb::class_<ComponentParameter>(
      module, "Parameter",
      "A number in the text after the colon of a codec's or a consistency model's name: above `above`, at most `most`.")
      .def(
          "__init__",
          [](ComponentParameter* self, const std::string& name, double usual, double above, double most, bool whole,
             bool or_zero) { new (self) ComponentParameter{name, usual, above, most, whole, or_zero}; },
          "name"_a, "default"_a, nb::kw_only(), "above"_a = 0.0, "most"_a, "whole"_a = false, "or_zero"_a = false)
      .def_ro("name", &ComponentParameter::name)
      .def_ro("default", &ComponentParameter::usual)
      .def("__getstate__",
           [](const ComponentParameter& self) {
             return State{self.name, self.usual, self.above, self.most, self.whole, self.or_zero};
           })
      .def("__setstate__", [](ComponentParameter& self, const State& state) {
        const auto& [name, usual, above, most, whole, or_zero] = state;
        new (&self) ComponentParameter{name, usual, above, most, whole, or_zero};
      });
}

}  // namespace syncopate::bind
