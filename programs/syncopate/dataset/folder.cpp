// Drawing pictures of random sizes into a folder for each class.
#include "dataset/folder.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "dataset/image.hpp"
#include "dataset/jpeg.hpp"
#include "dataset/shape.hpp"
#include "dataset/writing.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::dataset {
namespace {

namespace fs = std::filesystem;

constexpr int kLeastSide = 8, kMostSide = 4096;
constexpr std::uint32_t kSizes = 4;  ///< the set of draws that decides about sizes

void check_sizes(const FolderOptions& folder) {
  if (folder.least_side < kLeastSide || folder.most_side > kMostSide || folder.least_side > folder.most_side)
    throw Misuse(fmt::format("--size {}..{}; allowed: a size from {} to {}, or two with the smaller one first",
                             folder.least_side, folder.most_side, kLeastSide, kMostSide));
  if (folder.quality < 1 || folder.quality > 100)
    throw Misuse(fmt::format("--quality {}; allowed: 1 to 100", folder.quality));
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw SystemFailure(fmt::format("cannot make folder {}: {}", path.string(), error.message()));
}

}  // namespace

void write_folder(const DatasetOptions& options, const FolderOptions& folder,
                  const std::function<void(int)>& progress) {
  check(options);
  check_sizes(folder);
  int drawn = 0;
  const auto write_part = [&](const fs::path& part, Set set, int count) {
    for (const std::string_view name : kClasses) make_folder(part / name);
    for (int i = 0; i < count; ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      const int label = label_of(options.seed, set, i);
      Random sizes(options.seed, kSizes + set, index);
      const int side = folder.least_side + sizes.below(folder.most_side - folder.least_side + 1);
      const Picture picture = draw_picture(label, side, Random(options.seed, set, index), options.difficulty);
      const fs::path file = part / kClasses[static_cast<std::size_t>(label)] / fmt::format("{:08}.jpeg", i);
      write_whole(file, [&, text = jpeg_of(picture, folder.quality)](std::ofstream& out) { out << text; });
      if (++drawn % 100 == 0) progress(drawn);
    }
  };
  write_part(fs::path(options.folder) / "train", training, options.train);
  write_part(fs::path(options.folder) / "val", testing, options.test);
}

}  // namespace syncopate::tools::dataset
