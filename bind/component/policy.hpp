// A merge policy that Python computes.
#pragma once

#include <string>

#include "component/component.hpp"
#include "syncopate/policy.hpp"

namespace syncopate::bind {

class PythonPolicy final : public schedule::Policy, public Component {
 public:
  /// `needed`: "sizes" or "times". Throws Misuse for another one, or a name that is not allowed.
  PythonPolicy(std::string own_name, nb::object function, const std::string& needed);
};

}  // namespace syncopate::bind
