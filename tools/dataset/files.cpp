// The files of a drawn data set: order of the classes, counts, and writing each file whole or not at all.
#include "dataset/files.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "dataset/image.hpp"
#include "dataset/shape.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::dataset {
namespace {

namespace fs = std::filesystem;

constexpr int kTrainFiles = 5;
constexpr int kMostImages = 10'000'000;
/// Sets have counter ranges of their own; the order of classes is drawn from a third and fourth.
enum Set : std::uint32_t { training = 0, testing = 1, order_offset = 2 };

/// The class of image `index`: a random order of the ten classes for each run of ten images.
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
    throw Misuse(fmt::format("--out {}: the folder is not empty; name another, or say --force to write into it",
                             options.folder));
}

/// Writes beside the target and renames: a reader sees the old file or the new one.
template <class Write>
void write_whole(const fs::path& target, Write&& write) {
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

}  // namespace

void write_dataset(const DatasetOptions& options, const std::function<void(int)>& progress) {
  check(options);
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) throw SystemFailure(fmt::format("cannot make folder {}: {}", options.folder, error.message()));
  const fs::path folder = options.folder;
  int drawn = 0;
  const auto write_images = [&](const fs::path& target, Set set, int first, int last) {
    write_whole(target, [&](std::ofstream& file) {
      for (int i = first; i < last; ++i) {
        const Record record = draw_image(label_of(options.seed, set, i),
                                         Random(options.seed, set, static_cast<std::uint64_t>(i)), options.difficulty);
        file.write(reinterpret_cast<const char*>(record.data()), static_cast<std::streamsize>(record.size()));
        if (++drawn % 500 == 0) progress(drawn);
      }
    });
  };
  const auto share = [&](int part) {
    return static_cast<int>(static_cast<std::int64_t>(options.train) * part / kTrainFiles);
  };
  for (int part = 0; part < kTrainFiles; ++part)
    write_images(folder / fmt::format("data_batch_{}.bin", part + 1), training, share(part), share(part + 1));
  write_images(folder / "test_batch.bin", testing, 0, options.test);
  write_whole(folder / "batches.meta.txt", [](std::ofstream& file) {
    for (const std::string_view name : kClasses) file << name << '\n';
  });
}

}  // namespace syncopate::tools::dataset
