// CIFAR-10's binary format: records of one label byte and 3 x 32 x 32 colour bytes, plane by plane.
#include <array>
#include <cmath>
#include <filesystem>

#include "data/data.hpp"
#include "data/files.hpp"
#include "random.hpp"
#include "require.hpp"

namespace syncopate::train {
namespace {

constexpr int kSide = 32;
constexpr std::size_t kPlane = kSide * kSide;
constexpr std::size_t kRecord = 1 + 3 * kPlane;
constexpr int kMargin = 4;  ///< pixels of zero around an image from which the random crop is taken

using Bytes = std::vector<std::uint8_t>;

void append_records(const std::filesystem::path& file, Bytes& records) {
  require(std::filesystem::exists(file),
          "{} is missing: a CIFAR-10 folder holds data_batch_1.bin to data_batch_5.bin "
          "and test_batch.bin",
          file.string());
  const std::size_t before = records.size();
  append_file(file, records);
  const std::size_t size = records.size() - before;
  require_intact(size % kRecord == 0, "{} has {} bytes, which is no multiple of a record's {}", file.string(), size,
                 kRecord);
  for (std::size_t at = 0; at < size; at += kRecord)
    require_intact(records[before + at] <= 9, "{}: label {} at offset {} is not one of 0..9", file.string(),
                   records[before + at], at);
}

/// Maps each channel's bytes to (x - mean) / deviation, with the moments of the training images.
using Normaliser = std::array<std::array<float, 256>, 3>;

Normaliser normaliser_of(const Bytes& records) {
  std::array<std::array<std::uint64_t, 256>, 3> histogram{};
  for (std::size_t at = 0; at < records.size(); at += kRecord)
    for (std::size_t i = 0; i < 3 * kPlane; ++i) ++histogram[i / kPlane][records[at + 1 + i]];
  Normaliser result{};
  for (std::size_t c = 0; c < 3; ++c) {
    double count = 0, sum = 0, squares = 0;
    for (std::size_t v = 0; v < 256; ++v) {
      const auto n = static_cast<double>(histogram[c][v]), value = static_cast<double>(v);
      count += n, sum += n * value, squares += n * value * value;
    }
    const double mean = sum / count, deviation = std::sqrt(std::max(squares / count - mean * mean, 1.0));
    for (std::size_t v = 0; v < 256; ++v)
      result[c][v] = static_cast<float>((static_cast<double>(v) - mean) / deviation);
  }
  return result;
}

struct Change {
  int dx = 0, dy = 0;
  bool flip = false;
};

Change change_of(std::uint32_t sample, const Augmentation& augmentation) {
  if (!augmentation.on) return {};
  Random random{augmentation.seed, 0x61756767, augmentation.epoch, sample};
  const auto shift = [&] { return static_cast<int>(random.below(2 * kMargin + 1)) - kMargin; };
  return {shift(), shift(), (random.bits() & 1) != 0};
}

class Cifar10 final : public Data {
 public:
  Cifar10(Bytes train, Bytes test)
      : train_(std::move(train)), test_(std::move(test)), normaliser_(normaliser_of(train_)) {}

  int side() const override { return kSide; }
  std::size_t training_samples() const override { return train_.size() / kRecord; }
  std::size_t evaluation_samples() const override { return test_.size() / kRecord; }
  Batch training(Samples samples, const Augmentation& augmentation) const override {
    return batch(train_, samples, augmentation);
  }
  Batch evaluation(Samples samples) const override { return batch(test_, samples, {}); }

 private:
  Batch batch(const Bytes& records, Samples samples, const Augmentation& augmentation) const {
    const auto n = static_cast<std::int64_t>(samples.size());
    Batch result{at::empty({n, 3, kSide, kSide}, at::kFloat), at::empty({n}, at::kLong)};
    float* image = result.input.data_ptr<float>();
    std::int64_t* label = result.target.data_ptr<std::int64_t>();
    for (const std::uint32_t sample : samples) {
      const std::uint8_t* const record = records.data() + kRecord * sample;
      *label++ = record[0];
      write_image(record + 1, change_of(sample, augmentation), image);
      image += 3 * kPlane;
    }
    return result;
  }

  void write_image(const std::uint8_t* planes, const Change& change, float* out) const {
    for (std::size_t c = 0; c < 3; ++c)
      for (int y = 0; y < kSide; ++y) write_row({planes + c * kPlane, normaliser_[c], y}, change, out + c * kPlane);
  }

  struct Row {
    const std::uint8_t* plane;
    const std::array<float, 256>& map;
    int y;
  };

  static void write_row(const Row& row, const Change& change, float* out_plane) {
    const int from_y = row.y + change.dy;
    for (int x = 0; x < kSide; ++x) {
      const int from_x = (change.flip ? kSide - 1 - x : x) + change.dx;
      const bool inside = from_y >= 0 && from_y < kSide && from_x >= 0 && from_x < kSide;
      out_plane[row.y * kSide + x] = inside ? row.map[row.plane[from_y * kSide + from_x]] : 0.0F;
    }
  }

  Bytes train_, test_;
  Normaliser normaliser_;
};

}  // namespace

std::unique_ptr<Data> open_cifar10(const std::string& path) {
  const std::filesystem::path folder = cifar10_folder(path);
  require(!folder.empty(),
          "--data {} holds no CIFAR-10: neither it nor its cifar-10-batches-bin has data_batch_1.bin "
          "(`syncopate data draw` makes such a folder)",
          path);
  Bytes train, test;
  for (int i = 1; i <= 5; ++i) append_records(folder / fmt::format("data_batch_{}.bin", i), train);
  append_records(folder / "test_batch.bin", test);
  require_intact(!train.empty(), "{}: the five training files are empty", folder.string());
  require_intact(!test.empty(), "{} is empty", (folder / "test_batch.bin").string());
  return std::make_unique<Cifar10>(std::move(train), std::move(test));
}

}  // namespace syncopate::train
