// Folder: pictures as files, a folder for each class, as ImageNet is unpacked.
//
// Law: a label is the index of the class folder of train/ in byte order of the names; records are sorted by label, then
// name.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "base/require.hpp"
#include "input/file.hpp"
#include "input/format.hpp"
#include "input/picture/photograph.hpp"

namespace syncopate::input::format {
namespace {

namespace fs = std::filesystem;

struct Picture {
  std::string file;
  std::uint32_t bytes = 0;
  std::int32_t label = 0;
};

std::vector<std::string> names_in(const fs::path& folder, bool (*wanted)(const fs::directory_entry&)) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (wanted(*it)) names.push_back(it->path().filename().string());
  if (error) throw SystemFailure(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  std::ranges::sort(names);
  return names;
}

bool is_class(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored) && !entry.path().filename().string().starts_with(".");
}

bool is_picture(const fs::directory_entry& entry) { return is_photograph(entry.path().filename().string()); }

class PictureFiles final : public Source {
 public:
  PictureFiles(fs::path folder, const std::vector<std::string>& classes) : folder_(std::move(folder)) {
    for (const std::string& name : names_in(folder_, is_class)) {
      const auto found = std::ranges::lower_bound(classes, name);
      base::require(found != classes.end() && *found == name, "{} has no class of that name in train/",
                    (folder_ / name).string());
      for (const std::string& file : names_in(folder_ / name, is_picture))
        add(fs::path(name) / file, static_cast<std::int32_t>(found - classes.begin()));
    }
  }

  std::size_t records() const noexcept override { return pictures_.size(); }
  std::size_t bytes(std::size_t record) const override { return pictures_.at(record).bytes; }
  std::int64_t label(std::size_t record) const override { return pictures_.at(record).label; }
  std::string name(std::size_t record) const override { return (folder_ / pictures_.at(record).file).string(); }
  std::uint64_t version() const noexcept override { return version_; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    const File file(name(record));
    if (file.bytes() != into.size())
      throw Corrupt(
          fmt::format("{} has {} bytes and had {} when the set was opened", file.path(), file.bytes(), into.size()));
    file.read(0, into);
  }

 private:
  void add(const fs::path& file, std::int32_t label) {
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(folder_ / file, error);
    if (error) throw SystemFailure(fmt::format("cannot read {}: {}", (folder_ / file).string(), error.message()));
    if (bytes > UINT32_MAX)
      throw Corrupt(fmt::format("{} has {} bytes; allowed: below 4 GiB", (folder_ / file).string(), bytes));
    const std::int64_t changed = fs::last_write_time(folder_ / file, error).time_since_epoch().count();
    const std::string facts = fmt::format("{}/{}/{}", file.string(), bytes, changed);
    version_ = XXH3_64bits_withSeed(facts.data(), facts.size(), version_);
    pictures_.push_back({file.string(), static_cast<std::uint32_t>(bytes), label});
  }

  fs::path folder_;
  std::vector<Picture> pictures_;
  std::uint64_t version_ = 0;
};

/// An empty train/ is a folder without classes; one with only files belongs to another format.
bool recognises(const std::string& path) {
  const fs::path train = fs::path(path) / "train";
  std::error_code ignored;
  if (!fs::is_directory(train, ignored) || !fs::is_directory(fs::path(path) / "val", ignored)) return false;
  return fs::is_empty(train, ignored) || !names_in(train, is_class).empty();
}

bool is_archive(const fs::directory_entry& entry) { return entry.path().extension() == ".tar"; }

Dataset open(const std::string& path) {
  const fs::path folder = path;
  for (const char* part : {"train", "val"})
    base::require(names_in(folder / part, is_archive).empty(),
                  "{} has both archives (.tar) and class folders; allowed: one of them", (folder / part).string());
  Dataset set;
  set.classes = names_in(folder / "train", is_class);
  base::require(!set.classes.empty(), "{} has no class folders; allowed: one folder per class",
                (folder / "train").string());
  set.training = std::make_shared<PictureFiles>(folder / "train", set.classes);
  set.evaluation = std::make_shared<PictureFiles>(folder / "val", set.classes);
  set.decoder = [] { return picture_decoder(); };
  return set;
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
