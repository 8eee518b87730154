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

/// For Catalogue: adds an entry. Throws Misuse for a name that is not allowed, or that one of `all` entries has.
template <class Entry>
void add_entry(std::string_view what, std::vector<const Entry*>& added, const Entry& mine,
               std::span<const Entry* const> all) {
  require(!mine.name.empty() && mine.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == mine.name.npos,
          "a {} is named '{}'; allowed: a name of a-z, 0-9 and _", what, mine.name);
  require(std::ranges::find(all, mine.name, [](const Entry* entry) { return entry->name; }) == all.end(),
          "the catalogue already has a {} '{}'; allowed: another name", what, mine.name);
  added.push_back(&mine);
}

/// For Catalogue: the library's entries, then the added ones.
template <class Entry>
[[nodiscard]] std::vector<const Entry*> joined(std::span<const Entry* const> shelf,
                                               const std::vector<const Entry*>& added) {
  std::vector<const Entry*> all(shelf.begin(), shelf.end());
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

}  // namespace syncopate::base
