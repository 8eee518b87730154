// Functions that both formats of drawn sets share: the order of classes, the limits of counts, atomic file writes.
#pragma once

#include <filesystem>
#include <fstream>

#include "dataset/files.hpp"

namespace syncopate::tools::dataset {

/// Sets have counter ranges of their own; the order of classes is drawn from a third and fourth.
enum Set : std::uint32_t { training = 0, testing = 1, order_offset = 2 };

inline constexpr int kTrainFiles = 5;

/// The class of image `index`: a random order of the ten classes for each run of ten images.
[[nodiscard]] int label_of(std::uint64_t seed, Set set, int index);
/// Throws Misuse.
void check(const DatasetOptions& options);
/// Writes a temporary file in the target's folder and renames it: a reader sees the old file or the new one. Throws
/// SystemFailure.
void write_whole(const std::filesystem::path& target, const std::function<void(std::ofstream&)>& write);

}  // namespace syncopate::tools::dataset
