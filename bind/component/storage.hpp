// Storages whose functions Python has.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "component/component.hpp"
#include "component/parameter.hpp"
#include "syncopate/storage.hpp"

namespace syncopate::bind {

class PythonStorage final : public server::Storage, public Component {
 public:
  /// `maker` makes the storages from the numbers. Throws Misuse for a name or a default that is not allowed.
  PythonStorage(std::string own_name, nb::object maker, std::vector<ComponentParameter> numbers);

  [[nodiscard]] const nb::object& maker() const noexcept { return functions()[0]; }
  /// Whether what was made last has `load`: then memory is an object of Python, and a Buffer points to the object.
  [[nodiscard]] bool loads_objects() const noexcept { return loads_objects_; }
  void note_loads(bool loads) const noexcept { loads_objects_ = loads; }

 private:
  ParameterList parameters_;
  mutable std::atomic<bool> loads_objects_ = false;
};

}  // namespace syncopate::bind
