// Tar: pictures in archives, so that a network file system has few large files to open, and reads them in a row.
//
// Law: records are sorted by the archive's name in byte order, then by their order in the archive.
#include "input/tar.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>

#include "input/file.hpp"
#include "input/format.hpp"
#include "input/labelled.hpp"

namespace syncopate::input::format {
namespace {

namespace fs = std::filesystem;

/// Compressed ones too: they are refused by their contents, with the reason.
constexpr std::array<std::string_view, 6> kArchives{".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"};

std::vector<std::string> archives_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (is_record(it->path().filename().string(), kArchives)) files.push_back(it->path().string());
  std::ranges::sort(files);
  return files;
}

/// Open archives, and the index of each picture's archive.
struct Shards {
  std::vector<File> files;
  std::vector<std::size_t> file_of;
};

/// Headers are read once; contents are read on demand.
Part part_of(const fs::path& folder) {
  Part part;
  part.folder = folder.string();
  const auto shards = std::make_shared<Shards>();
  for (const std::string& path : archives_in(folder)) {
    const File& file = shards->files.emplace_back(path);
    const std::string facts =
        fmt::format("{}/{}/{}", fs::path(path).filename().string(), file.bytes(), file.changed_ns());
    part.version = XXH3_64bits_withSeed(facts.data(), facts.size(), part.version);
    std::ranges::move(tar::records_of(file, kPictureExtensions), std::back_inserter(part.pictures));
    shards->file_of.resize(part.pictures.size(), shards->files.size() - 1);
  }
  part.name = [shards](std::size_t record, const StoredFile& picture) {
    return fmt::format("{} in {}", picture.name, shards->files[shards->file_of[record]].path());
  };
  part.read = [shards](std::size_t record, const StoredFile& picture, std::span<std::byte> into) {
    shards->files[shards->file_of[record]].read(picture.offset, into);
  };
  return part;
}

bool has_archives(const std::string& path) { return !archives_in(fs::path(path) / "train").empty(); }

Dataset open_archives(const std::string& path) {
  return labelled_set(part_of(fs::path(path) / "train"), part_of(fs::path(path) / "val"));
}

}  // namespace

extern constinit const Format tar{
    .name = "tar",
    .summary =
        "Pictures (.jpeg, .jpg, .png) in tar archives, a folder for each class: CLASS/PICTURE in train/*.tar, "
        "val/*.tar",
    .source = "POSIX.1-1988, POSIX.1-2001 (ustar, pax); shards as in WebDataset (Aizman et al. 2019)",
    .recognises = has_archives,
    .open = open_archives,
};

}  // namespace syncopate::input::format
