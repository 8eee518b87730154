// Component: what the entries of a catalogue that call Python have in common.
#pragma once

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

/// The name and the Python functions of an entry. Its address is its identity in a catalogue, so it is not copied.
/// Created and destroyed with the GIL.
class Component {
 public:
  Component(const char* kind, std::string name, std::vector<nb::object> functions)
      : kind_(kind), name_(std::move(name)), functions_(std::move(functions)) {}
  Component(const Component&) = delete;
  Component& operator=(const Component&) = delete;

  [[nodiscard]] const std::string& own_name() const noexcept { return name_; }
  [[nodiscard]] std::string who() const { return fmt::format("{} {}", kind_, name_); }
  [[nodiscard]] const std::vector<nb::object>& functions() const noexcept { return functions_; }

 protected:
  ~Component() = default;

 private:
  const char* kind_;
  std::string name_;
  std::vector<nb::object> functions_;
};

/// `returned` as a T. Throws Misuse; `what` names the function, `allowed` the values.
template <class T>
T value_of(const Component& of, const char* what, const nb::object& returned, const char* allowed) {
  T value{};
  if (nb::try_cast(returned, value)) return value;
  throw Misuse(
      fmt::format("{}: {} is {}; allowed: {}", of.who(), what, nb::cast<std::string>(nb::repr(returned)), allowed));
}

/// For Python's garbage collector.
template <class T>
int traverse_component(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object& function : nb::inst_ptr<T>(self)->functions()) Py_VISIT(function.ptr());
  return 0;
}

/// Without tp_clear: threads of the library use the functions. A cycle is broken at the functions themselves.
template <class T>
inline PyType_Slot component_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_component<T>)}, {0, nullptr}};

}  // namespace syncopate::bind
