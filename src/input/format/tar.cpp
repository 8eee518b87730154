// Tar: pictures in archives, so that a network file system has few large files to open, and reads them in a row.
//
// Law: a label is the index of the class of train/ in byte order of the names; records are sorted by the archive's name
// in byte order, then by their order in the archive.
#include "input/tar.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/require.hpp"
#include "input/file.hpp"
#include "input/format.hpp"
#include "input/picture/photograph.hpp"

namespace syncopate::input::format {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> archives_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".tar") files.push_back(it->path().string());
  std::ranges::sort(files);
  return files;
}

/// The folder that contains it; empty: none.
std::string class_of(const tar::Member& member) {
  const std::string folder = fs::path(member.name).parent_path().filename().string();
  return folder == "." || folder == ".." ? std::string() : folder;
}

/// Hidden files are metadata of another system ("._x.jpeg"); hidden folders are not classes.
bool is_picture_of(const tar::Member& member) {
  const bool is_hidden =
      fs::path(member.name).filename().string().starts_with(".") || class_of(member).starts_with(".");
  return is_photograph(member.name) && !is_hidden;
}

/// The pictures of some archives. Headers are read once; contents are read on demand.
class Shards final : public Source {
 public:
  explicit Shards(const fs::path& folder) {
    for (const std::string& path : archives_in(folder)) {
      const File& file = files_.emplace_back(path);
      const std::string facts =
          fmt::format("{}/{}/{}", fs::path(path).filename().string(), file.bytes(), file.changed_ns());
      version_ = XXH3_64bits_withSeed(facts.data(), facts.size(), version_);
      for (tar::Member& member :
           tar::members_of({path, file.bytes(), [&](auto at, auto into) { file.read(at, into); }}))
        if (is_picture_of(member)) add(std::move(member));
    }
  }

  [[nodiscard]] std::set<std::string> classes() const {
    std::set<std::string> all;
    for (const Picture& picture : pictures_) all.insert(class_of(picture.member));
    return all;
  }
  /// `classes` are sorted. Throws Misuse for a picture of another class.
  void number(const std::vector<std::string>& classes) {
    for (std::size_t record = 0; record < pictures_.size(); ++record) {
      const std::string own = class_of(pictures_[record].member);
      const auto found = std::ranges::lower_bound(classes, own);
      base::require(found != classes.end() && *found == own, "{} is of class '{}', which is missing from train/",
                    name(record), own);
      pictures_[record].label = found - classes.begin();
    }
  }

  std::size_t records() const noexcept override { return pictures_.size(); }
  std::size_t bytes(std::size_t record) const override { return pictures_.at(record).member.bytes; }
  std::int64_t label(std::size_t record) const override { return pictures_.at(record).label; }
  std::string name(std::size_t record) const override {
    const Picture& picture = pictures_.at(record);
    return fmt::format("{} in {}", picture.member.name, files_[picture.file].path());
  }
  std::uint64_t version() const noexcept override { return version_; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    const Picture& picture = pictures_.at(record);
    files_[picture.file].read(picture.member.offset, into);
  }

 private:
  struct Picture {
    tar::Member member;
    std::size_t file = 0;
    std::int64_t label = 0;
  };

  void add(tar::Member member) {
    const std::string& archive = files_.back().path();
    base::require(!class_of(member).empty(), "{} in {} is not in a folder; allowed: CLASS/PICTURE", member.name,
                  archive);
    if (member.bytes > UINT32_MAX)
      throw Corrupt(fmt::format("{} in {} has {} bytes; allowed: below 4 GiB", member.name, archive, member.bytes));
    pictures_.push_back({std::move(member), files_.size() - 1, 0});
  }

  std::vector<File> files_;
  std::vector<Picture> pictures_;
  std::uint64_t version_ = 0;
};

bool has_archives(const std::string& path) { return !archives_in(fs::path(path) / "train").empty(); }

Dataset open_archives(const std::string& path) {
  const auto training = std::make_shared<Shards>(fs::path(path) / "train");
  const auto evaluation = std::make_shared<Shards>(fs::path(path) / "val");
  const std::set<std::string> classes = training->classes();
  Dataset set;
  set.classes.assign(classes.begin(), classes.end());
  training->number(set.classes);
  evaluation->number(set.classes);
  set.training = training;
  set.evaluation = evaluation;
  set.decoder = [] { return picture_decoder(); };
  return set;
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
