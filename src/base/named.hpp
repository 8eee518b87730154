// Enumerations by name: position in a list of names is the value.
#pragma once

#include <span>
#include <string_view>

#include "base/require.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::base {

/// The enumerator whose name stands at its position in `names`; throws Misuse that lists them.
template <class Enum>
[[nodiscard]] Enum value_named(std::string_view what, std::string_view name, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  throw Misuse(unknown_name(what, name, names));
}

}  // namespace syncopate::base
