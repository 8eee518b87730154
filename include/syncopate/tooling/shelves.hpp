// The shelves: the components that can be chosen by name, for `syncopate info`, error messages, tests and docs.
// documentation.
#pragma once

#include <string_view>
#include <vector>

namespace syncopate {

struct ShelfEntry {
  /// "algorithm", "codec", "policy", "cost", "placement", "consistency", "exchange", "optimizer"
  std::string_view shelf;
  std::string_view name;
  std::string_view summary;  ///< one sentence
  std::string_view source;   ///< paper and equation, or origin of the idea
};

/// Every entry of every shelf of the library, by shelf and name.
[[nodiscard]] std::vector<ShelfEntry> shelf_entries();

/// Whether a policy plans with measured times, and may therefore plan again. Throws Misuse: no such policy.
[[nodiscard]] bool plans_with_times(std::string_view policy);

}  // namespace syncopate
