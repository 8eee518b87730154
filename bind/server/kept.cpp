// The state of a job's tables between steps, for checkpoints in Python.
#include <nanobind/stl/string.h>

#include "array.hpp"
#include "bind.hpp"
#include "syncopate/error.hpp"
#include "syncopate/server_checkpoint.hpp"
#include "syncopate/server_rows.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using Arrays = nb::typed<nb::dict, std::string, OwnArray>;

std::vector<float> floats_of(nb::handle object, const std::string& name) {
  const Array array = array_of(object, {}, name.c_str());
  if (array.buffer.dtype != DType::f32)
    throw Misuse(name + " has elements of " + std::string(name_of(array.buffer.dtype)) + "; allowed: f32");
  const auto* const begin = static_cast<const float*>(array.buffer.data);
  return {begin, begin + array.buffer.count};
}

OwnArray array_in(nb::handle self, std::vector<float>& values) {
  return array_over(values.data(), {{values.size()}, DType::f32}, self);
}

Arrays state_of(nb::handle self) {
  nb::dict state;
  for (auto& [name, values] : nb::cast<KeptTables&>(self).state)
    state[nb::str(name.c_str())] = nb::cast(array_in(self, values));
  return nb::borrow<Arrays>(state);
}

/// Numbers of 64 bits, whose sign Python's arrays do not show.
OwnArray numbers_in(nb::handle self, std::vector<std::uint64_t>& values) {
  return array_over(values.data(), {{values.size()}, DType::i64}, self);
}

std::vector<std::uint64_t> numbers_of(nb::handle object, const char* name) {
  const nb::ndarray<nb::ro> array = read_array_of(object, name);
  if (array.dtype().bits != 64 || array.dtype().lanes != 1 ||
      array.dtype().code > static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt))
    throw Misuse(std::string(name) + " has elements of another type; allowed: int64, uint64");
  const auto* const begin = static_cast<const std::uint64_t*>(array.data());
  return {begin, begin + array.size()};
}

void bind_rows(nb::module_& module) {
  nb::class_<KeptRows>(
      module, "KeptRows",
      "Rows of one table with their state, from TableWorker.visit_rows, for TableWorker.restore_rows.\n\n"
      "rule: whose state it is. ids, steps: int64, a row's id and the number of its steps. values: "
      "float32, for each row its values, then as many of each state of the rule. Arrays are copied.")
      .def(
          "__init__",
          [](KeptRows* self, const std::string& rule, nb::handle ids, nb::handle steps, nb::handle values) {
            new (self) KeptRows{.rule = rule,
                                .ids = numbers_of(ids, "ids"),
                                .steps = numbers_of(steps, "steps"),
                                .values = floats_of(values, "values")};
          },
          "rule"_a, "ids"_a, "steps"_a, "values"_a)
      .def_ro("rule", &KeptRows::rule)
      .def_prop_ro("ids", [](nb::handle self) { return numbers_in(self, nb::cast<KeptRows&>(self).ids); })
      .def_prop_ro("steps", [](nb::handle self) { return numbers_in(self, nb::cast<KeptRows&>(self).steps); })
      .def_prop_ro(
          "values", [](nb::handle self) { return array_in(self, nb::cast<KeptRows&>(self).values); },
          "Flat, in this object's memory, as `ids` and `steps` are.");
}

}  // namespace

void bind_kept(nb::module_& module) {
  nb::class_<KeptTables>(
      module, "KeptTables",
      "The state of all tables between steps, from TableWorker.gather, for TableWorker.start. Arrays hold the tables "
      "one after another in the order of creation.\n\n"
      "step: number of steps whose updates of all workers are included. optimizer: the rule whose state it is. state: "
      "arrays of float32 by name, which are copied; empty: zero. weights: the exact ones of float32, which `start` "
      "reads for tables of 16 bits; None: those of the program's memory.")
      .def(
          "__init__",
          [](KeptTables* self, std::int64_t step, const std::string& optimizer, const nb::dict& state,
             nb::handle weights) {
            KeptTables kept{.step = step, .optimizer = optimizer};
            if (!weights.is_none()) kept.weights = floats_of(weights, "weights");
            for (const auto& [key, values] : state) {
              const auto name = nb::cast<std::string>(key);
              kept.state.emplace_back(name, floats_of(values, "state '" + name + "'"));
            }
            new (self) KeptTables(std::move(kept));
          },
          "step"_a, "optimizer"_a = "", "state"_a = nb::dict(), "weights"_a = nb::none())
      .def_ro("step", &KeptTables::step)
      .def_prop_ro(
          "weights", [](nb::handle self) { return array_in(self, nb::cast<KeptTables&>(self).weights); },
          "The servers' exact weights, in this object's memory.")
      .def_ro("optimizer", &KeptTables::optimizer)
      .def_prop_ro("state", state_of, "Arrays by name, in this object's memory.");
  bind_rows(module);
}

}  // namespace syncopate::bind
