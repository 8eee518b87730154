// A placement that Python computes.
#pragma once

#include <string>

#include "component/component.hpp"
#include "syncopate/placement.hpp"

namespace syncopate::bind {

class PythonPlacement final : public server::Placement, public Component {
 public:
  /// `most` may be None. Throws Misuse for a name that is not allowed.
  PythonPlacement(std::string own_name, nb::object shards, nb::object most);
};

}  // namespace syncopate::bind
