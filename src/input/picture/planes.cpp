// Decodes CIFAR-10's records to normalised pixels.
#include "input/picture/planes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "base/require.hpp"
#include "input/picture/resize.hpp"

namespace syncopate::input {
namespace {

constexpr int kSide = 32;
constexpr std::size_t kPlane = kSide * kSide;
constexpr int kMargin = 4;  ///< pixels of zero around a picture from which the random crop is taken
constexpr std::uint64_t kPlaneDraws = 0x61756767;  ///< "augg"

struct Change {
  int dx = 0, dy = 0;
  bool flip = false;
};

Change change_of(const PictureTransform& look) {
  if (!look.augment) return {};
  const base::CounterRandom random{look.seed, kPlaneDraws, look.epoch, look.sample};
  const auto shift = [&](std::uint64_t draw) {
    return static_cast<int>(random.below(2 * kMargin + 1, draw)) - kMargin;
  };
  return {shift(0), shift(1), (random.bits(2) & 1) != 0};
}

class Planes final : public Decoder {
 public:
  explicit Planes(const PlaneNormaliser& normaliser) : normaliser_(normaliser) {}

  void decode(std::span<const std::byte> record, const PictureTransform& look, float* out) override {
    base::require(look.side >= 1, "a picture of {} pixels each way; allowed: at least 1", look.side);
    if (record.size() != 1 + 3 * kPlane) throw Corrupt("is not a record of 1 + 3 x 32 x 32 bytes");
    if (look.side == kSide) return write(record.subspan(1), change_of(look), out);
    whole_.resize(3 * kPlane);
    write(record.subspan(1), change_of(look), whole_.data());
    resizer_.resize_planes(whole_.data(), kSide, look.side, out);
  }

 private:
  void write(std::span<const std::byte> planes, const Change& change, float* out) const {
    for (std::size_t c = 0; c < 3; ++c)
      for (int y = 0; y < kSide; ++y)
        write_row({planes.subspan(c * kPlane, kPlane), normaliser_[c], y}, change, out + c * kPlane);
  }

  struct Row {
    std::span<const std::byte> plane;
    const std::array<float, 256>& map;
    int y;
  };

  static void write_row(const Row& row, const Change& change, float* out_plane) {
    const int from_y = row.y + change.dy;
    for (int x = 0; x < kSide; ++x) {
      const int from_x = (change.flip ? kSide - 1 - x : x) + change.dx;
      const bool inside = from_y >= 0 && from_y < kSide && from_x >= 0 && from_x < kSide;
      const auto at = static_cast<std::size_t>(from_y) * kSide + static_cast<std::size_t>(from_x);
      out_plane[row.y * kSide + x] = inside ? row.map[std::to_integer<std::size_t>(row.plane[at])] : 0.0F;
    }
  }

  const PlaneNormaliser normaliser_;
  std::vector<float> whole_;
  Resizer resizer_;
};

}  // namespace

void PlaneMoments::add(std::span<const std::byte> planes) {
  const std::size_t plane = planes.size() / 3;
  for (std::size_t i = 0; i < planes.size(); ++i) ++histogram_[i / plane][std::to_integer<std::size_t>(planes[i])];
}

PlaneNormaliser PlaneMoments::normaliser() const {
  PlaneNormaliser result{};
  for (std::size_t c = 0; c < 3; ++c) {
    double count = 0, sum = 0, squares = 0;
    for (std::size_t v = 0; v < 256; ++v) {
      const auto n = static_cast<double>(histogram_[c][v]), value = static_cast<double>(v);
      count += n, sum += n * value, squares += n * value * value;
    }
    const double mean = sum / count, deviation = std::sqrt(std::max(squares / count - mean * mean, 1.0));
    for (std::size_t v = 0; v < 256; ++v)
      result[c][v] = static_cast<float>((static_cast<double>(v) - mean) / deviation);
  }
  return result;
}

std::unique_ptr<Decoder> plane_decoder(const PlaneNormaliser& normaliser) {
  return std::make_unique<Planes>(normaliser);
}

}  // namespace syncopate::input
