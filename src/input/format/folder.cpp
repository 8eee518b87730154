// Folder: pictures as files, a folder for each class, as ImageNet is unpacked.
//
// Law: records are sorted by the folders of their paths, then name; so by label.
#include <fmt/format.h>
#include <xxhash.h>

#include <filesystem>

#include "base/require.hpp"
#include "input/file.hpp"
#include "input/format.hpp"
#include "input/labelled.hpp"
#include "syncopate/error.hpp"

namespace syncopate::input::format {
namespace {

namespace fs = std::filesystem;

/// Whether an entry of the folder fits.
bool has_any(const fs::path& folder, bool (*fits)(const fs::directory_entry&)) {
  std::error_code error;
  bool found = false;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && !found; it.increment(error))
    found = fits(*it);
  if (error) throw SystemFailure(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  return found;
}

bool is_class_or_picture(const fs::directory_entry& entry) {
  std::error_code ignored;
  return is_record(entry.path().filename().string(),
                   entry.is_directory(ignored) ? Extensions() : Extensions(kPictureExtensions));
}

bool is_archive(const fs::directory_entry& entry) {
  return is_record(entry.path().filename().string()) && entry.path().extension() == ".tar";
}

Part part_of(const fs::path& folder) {
  base::require(!has_any(folder, is_archive), "{} has both archives (.tar) and class folders; allowed: one of them",
                folder.string());
  Part part;
  part.folder = folder.string();
  part.pictures = files_in_folder(part.folder, kPictureExtensions);
  for (const StoredFile& picture : part.pictures) {
    const std::string facts = fmt::format("{}/{}/{}", picture.name, picture.bytes, picture.changed_ns);
    part.version = XXH3_64bits_withSeed(facts.data(), facts.size(), part.version);
  }
  part.name = [folder](std::size_t, const StoredFile& picture) { return (folder / picture.name).string(); };
  part.read = [folder](std::size_t, const StoredFile& picture, std::span<std::byte> into) {
    const File file(folder / picture.name);
    if (file.bytes() != into.size())
      throw Corrupt(
          fmt::format("{} has {} bytes and had {} when the set was opened", file.path(), file.bytes(), into.size()));
    file.read(0, into);
  };
  return part;
}

/// An empty train/ is a folder without classes; one with only other files belongs to another format.
bool recognises(const std::string& path) {
  const fs::path train = fs::path(path) / "train";
  std::error_code ignored;
  if (!fs::is_directory(train, ignored) || !fs::is_directory(fs::path(path) / "val", ignored)) return false;
  return fs::is_empty(train, ignored) || has_any(train, is_class_or_picture);
}

Dataset open(const std::string& path) {
  return labelled_set(part_of(fs::path(path) / "train"), part_of(fs::path(path) / "val"));
}

}  // namespace

extern constinit const Format folder{
    .name = "folder",
    .summary = "Pictures as files (.jpeg, .jpg, .png), a folder for each class: train/CLASS/PICTURE, val/CLASS/PICTURE",
    .source = "ImageNet as it is unpacked (Russakovsky et al. 2015)",
    .recognises = recognises,
    .open = open,
};

}  // namespace syncopate::input::format
