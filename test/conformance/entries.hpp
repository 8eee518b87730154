// Entries: every algorithm of the catalogue with every collective that it offers, as parameters of tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collective/select/select.hpp"
#include "sanitized.hpp"

namespace syncopate::test {

using Entry = std::pair<const collective::Algorithm*, Collective>;

inline std::vector<Entry> all_entries() {
  std::vector<Entry> entries;
  for (const collective::Algorithm* algorithm : collective::algorithms())
    for (const Collective collective : kCollectives)
      if (algorithm->offers(collective)) entries.emplace_back(algorithm, collective);
  return entries;
}

inline std::vector<Entry> entries_of(Collective collective) {
  auto entries = all_entries();
  std::erase_if(entries, [&](const Entry& entry) { return entry.second != collective; });
  return entries;
}

inline std::string title(const testing::TestParamInfo<Entry>& info) {
  return std::string(info.param.first->name) + "_" + std::string(name_of(info.param.second));
}

/// Does a root matter?
inline std::vector<int> roots_of(Collective collective, int ranks) {
  if (!collective::plan::has_root(collective)) return {0};
  std::vector<int> roots{0, ranks / 2, ranks - 1};
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  return roots;
}

}  // namespace syncopate::test
