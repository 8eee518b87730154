// CIFAR-10's binary format: records of one label byte and 3 x 32 x 32 colour bytes, plane by plane.
#include <fmt/format.h>
#include <xxhash.h>

#include <filesystem>

#include "base/require.hpp"
#include "input/file.hpp"
#include "input/format.hpp"
#include "input/picture/planes.hpp"

namespace syncopate::input::format {
namespace {

namespace fs = std::filesystem;

constexpr PlaneLayout kLayout{.side = 32, .planes = 3, .head = 1};
constexpr std::size_t kRecord = 1 + 3 * 32 * 32;

fs::path folder_of(const fs::path& path) {
  std::error_code ignored;
  for (const fs::path& folder : {path, path / "cifar-10-batches-bin"})
    if (fs::exists(folder / "data_batch_1.bin", ignored)) return folder;
  return {};
}

/// Consecutive files. Labels are held; pixels are read on demand.
class CifarFiles final : public Source {
 public:
  void append(const fs::path& path, PlaneMoments& moments) {
    std::error_code ignored;
    base::require(fs::exists(path, ignored),
                  "{} is missing: a CIFAR-10 folder holds data_batch_1.bin to data_batch_5.bin and test_batch.bin",
                  path.string());
    const File& file = files_.emplace_back(path.string());
    if (file.bytes() % kRecord != 0)
      throw Corrupt(
          fmt::format("{} has {} bytes, which is not a multiple of a record's {}", file.path(), file.bytes(), kRecord));
    std::vector<std::byte> record(kRecord);
    for (std::uint64_t at = 0; at < file.bytes(); at += kRecord) {
      file.read(at, record);
      const auto label = std::to_integer<std::uint8_t>(record[0]);
      if (label > 9) throw Corrupt(fmt::format("{}: label {} at offset {} is not one of 0..9", file.path(), label, at));
      labels_.push_back(label);
      moments.add(record);
    }
    ends_.push_back(labels_.size());
    const std::string facts = fmt::format("{}/{}/{}", path.filename().string(), file.bytes(), file.changed_ns());
    version_ = XXH3_64bits_withSeed(facts.data(), facts.size(), version_);
  }

  std::size_t records() const noexcept override { return labels_.size(); }
  std::size_t bytes(std::size_t) const override { return kRecord; }
  std::int64_t label(std::size_t record) const override { return labels_.at(record); }
  std::string name(std::size_t record) const override {
    const auto [file, offset] = place_of(record);
    return fmt::format("{} at offset {}", files_[file].path(), offset);
  }
  std::uint64_t version() const noexcept override { return version_; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    const auto [file, offset] = place_of(record);
    files_[file].read(offset, into);
  }

 private:
  [[nodiscard]] std::pair<std::size_t, std::uint64_t> place_of(std::size_t record) const {
    std::size_t file = 0;
    while (record >= ends_.at(file)) ++file;
    return {file, (record - (file == 0 ? 0 : ends_[file - 1])) * kRecord};
  }

  std::vector<File> files_;
  std::vector<std::size_t> ends_;  ///< records up to the end of each file
  std::vector<std::uint8_t> labels_;
  std::uint64_t version_ = 0;
};

bool recognises(const std::string& path) { return !folder_of(path).empty(); }

Dataset open(const std::string& path) {
  const fs::path folder = folder_of(path);
  const auto training = std::make_shared<CifarFiles>(), evaluation = std::make_shared<CifarFiles>();
  PlaneMoments moments(kLayout), ignored(kLayout);
  for (int i = 1; i <= 5; ++i) training->append(folder / fmt::format("data_batch_{}.bin", i), moments);
  evaluation->append(folder / "test_batch.bin", ignored);
  Dataset set;
  set.classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  set.side = kLayout.side;
  set.training = training;
  set.evaluation = evaluation;
  set.decoder = [map = moments.normaliser()] { return plane_decoder(kLayout, map); };
  return set;
}

}  // namespace

extern constinit const Format cifar10{
    .name = "cifar10",
    .summary = "CIFAR-10's binary files: 32 x 32 pixels, ten classes, normalised by the moments of the training part",
    .source = "Krizhevsky 2009, binary version",
    .recognises = recognises,
    .open = open,
};

}  // namespace syncopate::input::format
