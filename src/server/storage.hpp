// Storages by name.
#pragma once

#include <span>
#include <string_view>

#include "syncopate/catalogue.hpp"
#include "syncopate/storage.hpp"

namespace syncopate::server {

/// Limit of Storages::kept.
inline constexpr std::size_t kMostKept = 16;

/// The library's storages, by name (generated from the folder storage/).
[[nodiscard]] std::span<const Storage* const> storages();
/// Parses `name` or `name:parameter`. Throws Misuse that lists the storages, or names the parameter and the allowed
/// values, and for functions that are not allowed together.
[[nodiscard]] Storages storages_of(std::string_view text, const Catalogue& catalogue = {});
/// Throws Misuse if the program's memory of a table may not have this type: a storage that loads it knows it itself.
void require_type(const Storages& storages, std::string_view what, std::string_view table, DType type);

}  // namespace syncopate::server
