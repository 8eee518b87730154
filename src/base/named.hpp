// Enumerations by name: the position of a name in a list is the enumerator's value.
#pragma once

#include <span>
#include <string_view>

#include "base/require.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::base {

/// The enumerator with that name; throws Misuse that lists `names`.
template <class Enum>
[[nodiscard]] Enum value_named(std::string_view what, std::string_view name, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  throw Misuse(unknown_name(what, name, names));
}

}  // namespace syncopate::base
