// Idx: MNIST's four files, grey pictures and their labels, also compressed by gzip.
#include "input/idx.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "base/require.hpp"
#include "input/file.hpp"
#include "input/format.hpp"
#include "input/picture/planes.hpp"

namespace syncopate::input::format {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kClasses = 10;
constexpr std::uint32_t kMostSide = 4096;

/// The file of that name in the folder, or of that name with .gz; empty if neither exists.
fs::path file_of(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const fs::path& file : {folder / name, folder / (name + ".gz")})
    if (fs::exists(file, ignored)) return file;
  return {};
}

/// The pictures of one part, in memory.
class IdxPictures final : public Source {
 public:
  /// `part`: "train" or "t10k".
  IdxPictures(const fs::path& folder, const std::string& part)
      : pictures_(load(folder, part + "-images-idx3-ubyte", 3)), labels_(load(folder, part + "-labels-idx1-ubyte", 1)) {
    const auto& sizes = pictures_.array.sizes;
    if (sizes[1] != sizes[2] || sizes[1] < 1 || sizes[1] > kMostSide)
      throw Corrupt(fmt::format("{} has pictures of {} x {} pixels; allowed: square ones of 1 to {} pixels each way",
                                pictures_.path, sizes[1], sizes[2], kMostSide));
    if (labels_.array.sizes[0] != sizes[0])
      throw Corrupt(fmt::format("{} has {} labels and {} has {} pictures; allowed: one label for each picture",
                                labels_.path, labels_.array.sizes[0], pictures_.path, sizes[0]));
    const base::ConstBytes labels = labels_.array.values();
    const auto wrong = std::ranges::find_if(labels, [](std::byte label) { return label >= std::byte{kClasses}; });
    if (wrong != labels.end())
      throw Corrupt(fmt::format("{}: label {} of picture {} is not one of 0..{}", labels_.path,
                                std::to_integer<int>(*wrong), wrong - labels.begin(), kClasses - 1));
  }

  [[nodiscard]] PlaneLayout layout() const {
    return {.side = static_cast<int>(pictures_.array.sizes[1]), .planes = 1, .head = 0};
  }
  [[nodiscard]] const std::string& path() const { return pictures_.path; }
  [[nodiscard]] base::ConstBytes picture(std::size_t record) const {
    const std::size_t bytes = layout().bytes();
    return pictures_.array.values().subspan(record * bytes, bytes);
  }

  std::size_t records() const noexcept override { return pictures_.array.sizes[0]; }
  std::size_t bytes(std::size_t) const override { return layout().bytes(); }
  std::int64_t label(std::size_t record) const override {
    return std::to_integer<std::int64_t>(labels_.array.values()[record]);
  }
  std::string name(std::size_t record) const override { return fmt::format("picture {} of {}", record, path()); }
  std::uint64_t version() const noexcept override { return version_; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    std::ranges::copy(picture(record), into.begin());
  }

 private:
  struct Loaded {
    std::string path;
    idx::Array array;
  };

  Loaded load(const fs::path& folder, const std::string& name, std::size_t dimensions) {
    const fs::path path = file_of(folder, name);
    base::require(!path.empty(),
                  "{} is missing: a folder of format idx has train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                  "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain or with .gz",
                  (folder / name).string());
    const File file(path.string());
    if (file.bytes() > idx::kMostBytes)
      throw Corrupt(fmt::format("{} has {} bytes; allowed: at most 4 GiB", file.path(), file.bytes()));
    const std::string facts = fmt::format("{}/{}/{}", path.filename().string(), file.bytes(), file.changed_ns());
    version_ = XXH3_64bits_withSeed(facts.data(), facts.size(), version_);
    std::vector<std::byte> bytes(file.bytes());
    file.read(0, bytes);
    return {file.path(), idx::array_of(std::move(bytes), dimensions, file.path())};
  }

  std::uint64_t version_ = 0;
  Loaded pictures_, labels_;
};

bool recognises(const std::string& path) { return !file_of(path, "train-images-idx3-ubyte").empty(); }

Dataset open(const std::string& path) {
  const auto training = std::make_shared<const IdxPictures>(path, "train");
  const auto evaluation = std::make_shared<const IdxPictures>(path, "t10k");
  const PlaneLayout layout = training->layout();
  if (evaluation->layout().side != layout.side)
    throw Corrupt(fmt::format("{} has pictures of {} pixels each way and {} of {}; allowed: equal sizes",
                              evaluation->path(), evaluation->layout().side, training->path(), layout.side));
  PlaneMoments moments(layout);
  for (std::size_t i = 0; i < training->records(); ++i) moments.add(training->picture(i));
  Dataset set;
  for (std::size_t label = 0; label < kClasses; ++label) set.classes.push_back(std::to_string(label));
  set.side = layout.side;
  set.training = training;
  set.evaluation = evaluation;
  set.decoder = [layout, map = moments.normaliser()] { return plane_decoder(layout, map); };
  return set;
}

}  // namespace

extern constinit const Format idx{
    .name = "idx",
    .summary =
        "MNIST's four files, plain or gzipped: square grey pictures, ten classes, normalised by the moments of "
        "the training part",
    .source = "LeCun, Cortes & Burges 1998, the MNIST database",
    .recognises = recognises,
    .open = open,
};

}  // namespace syncopate::input::format
