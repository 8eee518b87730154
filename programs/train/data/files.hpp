// Reads complete input files; errors name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::train {

/// Appends the file's bytes to `into`. Throws SystemFailure with the file and the reason.
void append_file(const std::filesystem::path& file, std::vector<std::uint8_t>& into);
/// The path of a regular file; for a folder, all regular files below it, sorted by path. Throws Misuse, SystemFailure.
[[nodiscard]] std::vector<std::filesystem::path> files_below(const std::filesystem::path& path);

}  // namespace syncopate::train
