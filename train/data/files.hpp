// Reading input files whole, with errors that name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::train {

/// The file's bytes, appended to `into`. Throws SystemFailure naming the file and the reason.
void append_file(const std::filesystem::path& file, std::vector<std::uint8_t>& into);
/// A regular file as it is; of a folder all regular files below it, sorted by path. Throws Misuse, SystemFailure.
[[nodiscard]] std::vector<std::filesystem::path> files_below(const std::filesystem::path& path);

}  // namespace syncopate::train
