// The order of classes, counts, and writing each file whole or not at all.
#include "dataset/writing.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "dataset/random.hpp"
#include "dataset/shape.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::dataset {

namespace fs = std::filesystem;

namespace {

constexpr int kMostImages = 10'000'000;

}  // namespace

int label_of(std::uint64_t seed, Set set, int index) {
  std::array<int, kClasses.size()> order;
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, set + order_offset, static_cast<std::uint64_t>(index) / order.size());
  for (int i = static_cast<int>(order.size()) - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i + 1))]);
  return order[static_cast<std::size_t>(index) % order.size()];
}

void check(const DatasetOptions& options) {
  if (options.folder.empty()) throw Misuse("--out: name a folder");
  if (options.train < kTrainFiles || options.train > kMostImages)
    throw Misuse(fmt::format("--train {}; allowed: {} to {} images", options.train, kTrainFiles, kMostImages));
  if (options.test < 1 || options.test > kMostImages)
    throw Misuse(fmt::format("--test {}; allowed: 1 to {} images", options.test, kMostImages));
  if (!(options.difficulty >= 0 && options.difficulty <= 1))
    throw Misuse(fmt::format("--difficulty {}; allowed: 0 to 1", options.difficulty));
  std::error_code none;
  const bool exists = fs::exists(options.folder, none);
  if (exists && !fs::is_directory(options.folder, none))
    throw Misuse(fmt::format("--out {}: this is a file; name a folder", options.folder));
  if (exists && !options.overwrite && !fs::is_empty(options.folder, none))
    throw Misuse(fmt::format("--out {}: the folder is not empty; name another, or give --force to write into it",
                             options.folder));
}

void write_whole(const fs::path& target, const std::function<void(std::ofstream&)>& write) {
  const fs::path draft = target.string() + ".part";
  std::ofstream file(draft, std::ios::binary | std::ios::trunc);
  write(file);
  file.close();
  std::error_code error;
  if (file) fs::rename(draft, target, error);
  if (!file || error) {
    std::error_code ignored;
    fs::remove(draft, ignored);
    throw SystemFailure(fmt::format("cannot write {}: {}", target.string(), error ? error.message() : "disk full?"));
  }
}

}  // namespace syncopate::tools::dataset
