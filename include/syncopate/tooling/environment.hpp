// The environment variables of the library and its programs.
// `syncopate info --environment` and docs/environment.md list them.
#pragma once

#include <span>
#include <string_view>

#include "syncopate/tooling/allowed_values.hpp"

namespace syncopate {

struct EnvironmentVariable {
  std::string_view name;
  AllowedValues allowed;
  std::string_view values;    ///< allowed values, for people
  std::string_view fallback;  ///< value if it is not set
  std::string_view topic;     ///< heading in the documentation
  std::string_view meaning;   ///< one or two sentences
};

/// Every variable that the library, its programs or its tests read, by topic.
[[nodiscard]] std::span<const EnvironmentVariable> environment_variables();

/// Throws Misuse that names the variable and its allowed values, if `name` is one of these variables and does not allow
/// `value`. An empty value means that the variable is not set.
void require_allowed(std::string_view name, std::string_view value);

}  // namespace syncopate
