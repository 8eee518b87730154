// The shelves: the components that can be chosen by name, for `syncopate info`, error messages, tests and docs.
#pragma once

#include <string_view>
#include <vector>

namespace syncopate {

struct ShelfEntry {
  /// "algorithm", "codec", "policy", "cost", "placement", "consistency", "storage", "exchange", "optimizer",
  /// "architecture", "format"
  std::string_view shelf;
  std::string_view name;
  std::string_view summary;  ///< one sentence
  std::string_view source;   ///< paper and equation, or origin of the idea
};

/// Every entry of every shelf of the library, by shelf and name.
[[nodiscard]] std::vector<ShelfEntry> shelf_entries();
/// The entries with that name, or on the shelf of that name; all for an empty name. Throws Misuse, naming the allowed
/// names.
[[nodiscard]] std::vector<ShelfEntry> entries_named(std::string_view name, std::vector<ShelfEntry> all);

/// Whether a policy plans with measured times, and may therefore plan again. Throws Misuse: no such policy.
[[nodiscard]] bool plans_with_times(std::string_view policy);

}  // namespace syncopate
