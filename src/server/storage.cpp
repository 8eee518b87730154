// Storages by name, and which of their functions are allowed together.
#include "server/storage.hpp"

#include "base/require.hpp"
#include "base/shelf/parameters.hpp"

namespace syncopate {

std::vector<const server::Storage*> Catalogue::storages() const { return base::joined(server::storages(), storages_); }

Catalogue Catalogue::with(const server::Storage& mine) const {
  Catalogue more = *this;
  base::add_entry<server::Storage>("storage", more.storages_, mine, storages());
  base::require(mine.storages != nullptr, "storage {} has no storages; allowed: with them", mine.name);
  base::shelf::require_usual({"storage", mine.name, mine.parameter, mine.parameter}, mine.parameters);
  return more;
}

}  // namespace syncopate

namespace syncopate::server {

Storages storages_of(std::string_view text, const Catalogue& catalogue) {
  const auto [entry, parameter] = base::shelf::entry_and_parameter<Storage>("storage", text, catalogue.storages());
  Storages own = entry->storages(
      base::shelf::numbers_of({"storage", entry->name, parameter, entry->parameter}, entry->parameters));
  base::require(static_cast<bool>(own.load) == static_cast<bool>(own.store),
                "storage {} has {} and no {}; allowed: both or neither", text, own.load ? "load" : "store",
                own.load ? "store" : "load");
  base::require(own.kept <= kMostKept, "storage {} keeps {} floats per element; allowed: at most {}", text, own.kept,
                kMostKept);
  base::require(own.kept == 0 || own.apply, "storage {} keeps {} floats per element and has no apply; allowed: with it",
                text, own.kept);
  return own;
}

void require_type(const Storages& storages, std::string_view what, std::string_view table, DType type) {
  const bool is_converted = type == DType::f32 || type == DType::f16 || type == DType::bf16;
  base::require(storages.load || is_converted,
                "{} of table '{}' of type {}; allowed: f32, f16, bf16, or what a storage loads", what, table,
                name_of(type));
}

}  // namespace syncopate::server
