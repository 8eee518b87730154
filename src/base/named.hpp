// Looks up enumerators and the entries of shelves by name; an unknown name is a Misuse that lists the known ones.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/require.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::base {

/// The enumerator with that name: the position of a name in `names` is its value.
template <class Enum>
[[nodiscard]] Enum value_named(std::string_view what, std::string_view name, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  throw Misuse(unknown_name(what, name, names));
}

/// The entry of that name in a shelf's table.
template <class Entry>
[[nodiscard]] const Entry& entry_named(std::string_view what, std::string_view name,
                                       std::span<const Entry* const> shelf) {
  const auto found = std::ranges::find(shelf, name, [](const Entry* entry) { return entry->name; });
  if (found != shelf.end()) return **found;
  std::vector<std::string_view> names;
  for (const Entry* entry : shelf) names.push_back(entry->name);
  throw Misuse(unknown_name(what, name, names));
}

}  // namespace syncopate::base
