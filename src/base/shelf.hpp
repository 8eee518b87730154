// Looks up an entry in a shelf's table.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/require.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::base {

/// The entry of that name; throws Misuse that lists the shelf.
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
