// An optimizer rule whose update Python computes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "component/component.hpp"
#include "syncopate/rule.hpp"

namespace syncopate::bind {

class PythonRule final : public optim::Rule, public Component {
 public:
  /// `states`: names. `hyperparameters`: names with default values. Throws Misuse for those that are not allowed.
  PythonRule(std::string own_name, nb::object function, std::vector<std::string> states,
             const std::vector<std::pair<std::string, double>>& hyperparameters);

 private:
  std::vector<std::string> states_;
  std::vector<std::string_view> state_names_;
  std::vector<optim::Hyperparameter> takes_;
};

}  // namespace syncopate::bind
