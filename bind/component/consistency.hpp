// A consistency model whose decisions Python makes.
#pragma once

#include <string>
#include <vector>

#include "component/component.hpp"
#include "component/parameter.hpp"
#include "syncopate/consistency.hpp"

namespace syncopate::bind {

class PythonConsistency final : public server::Consistency, public Component {
 public:
  /// `maker` makes the rule from the numbers. Throws Misuse for a name or a default that is not allowed.
  PythonConsistency(std::string own_name, nb::object maker, std::vector<ComponentParameter> numbers);

  [[nodiscard]] const nb::object& model() const noexcept { return functions()[0]; }

 private:
  ParameterList parameters_;
};

}  // namespace syncopate::bind
