// The entries of all shelves in one list.
#include "syncopate/tooling/shelves.hpp"

#include <algorithm>

#include "base/named.hpp"
#include "collective/algorithm.hpp"
#include "compress/codec.hpp"
#include "input/format.hpp"
#include "network/architecture.hpp"
#include "optim/rule.hpp"
#include "schedule/cost.hpp"
#include "schedule/policy.hpp"
#include "server/consistency.hpp"
#include "server/placement.hpp"
#include "server/storage.hpp"
#include "sync/exchange.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate {

std::vector<ShelfEntry> shelf_entries() {
  std::vector<ShelfEntry> entries;
  const auto add = [&](std::string_view shelf, auto table) {
    for (const auto* entry : table) entries.push_back({shelf, entry->name, entry->summary, entry->source});
  };
  add("algorithm", collective::algorithms());
  add("codec", compress::codecs());
  add("policy", schedule::policies());
  add("cost", schedule::cost_models());
  add("architecture", network::architectures());
  add("placement", server::placements());
  add("consistency", server::consistencies());
  add("storage", server::storages());
  add("exchange", sync::exchanges());
  add("optimizer", optim::rules());
  add("format", input::formats());
  return entries;
}

std::vector<ShelfEntry> entries_named(std::string_view name, std::vector<ShelfEntry> all) {
  if (name.empty()) return all;
  std::vector<std::string_view> known;
  for (const ShelfEntry& entry : all) {
    if (std::ranges::find(known, entry.shelf) == known.end()) known.push_back(entry.shelf);
    if (std::ranges::find(known, entry.name) == known.end()) known.push_back(entry.name);
  }
  std::erase_if(all, [&](const ShelfEntry& entry) { return entry.name != name && entry.shelf != name; });
  if (all.empty()) throw Misuse(unknown_name("name", name, known));
  return all;
}

bool plans_with_times(std::string_view policy) {
  return schedule::policy_named(policy).needs == schedule::Needs::times;
}

}  // namespace syncopate
