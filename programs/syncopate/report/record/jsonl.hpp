// Reading JSON files and files of one JSON object a line, with errors that name file and line.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

namespace syncopate::tools::report::record {

/// The one JSON object in `file`. Throws Corrupt naming file and position, SystemFailure where it cannot be read.
[[nodiscard]] nlohmann::json read_object(const std::filesystem::path& file);

/// Calls `row` with every object of `file` in turn; what it throws as nlohmann's type error becomes Corrupt.
/// A process killed while it writes leaves its last row in pieces: damage within the last two lines ends the reading
/// and returns true ("torn"); damage before them throws Corrupt naming file and line.
bool read_rows(const std::filesystem::path& file, const std::function<void(const nlohmann::json&)>& row);

/// A number, or kUnknown where the key is absent or null (not-a-number is written as null).
[[nodiscard]] double number(const nlohmann::json& object, std::string_view key);
/// A text, or empty where the key is absent or null.
[[nodiscard]] std::string text(const nlohmann::json& object, std::string_view key);

}  // namespace syncopate::tools::report::record
