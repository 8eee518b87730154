// Decodes records of planes to normalised pixels.
#include "input/picture/planes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "base/require.hpp"
#include "input/picture/resize.hpp"

namespace syncopate::input {
namespace {

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
  return {shift(0), shift(1), look.mirror && (random.bits(2) & 1) != 0};
}

std::span<const std::byte> planes_of(const PlaneLayout& layout, std::span<const std::byte> record) {
  if (record.size() != layout.bytes())
    throw Corrupt(fmt::format("has {} bytes; a record has {} + {} x {} x {}", record.size(), layout.head, layout.planes,
                              layout.side, layout.side));
  return record.subspan(layout.head);
}

class Planes final : public Decoder {
 public:
  Planes(const PlaneLayout& layout, const PlaneNormaliser& normaliser) : layout_(layout), normaliser_(normaliser) {}

  void decode(std::span<const std::byte> record, const PictureTransform& look, float* out) override {
    base::require(look.side >= 1, "a picture of {} pixels each way; allowed: at least 1", look.side);
    const std::span<const std::byte> planes = planes_of(layout_, record);
    if (look.side == layout_.side) return write(planes, change_of(look), out);
    whole_.resize(3 * layout_.plane_bytes());
    write(planes, change_of(look), whole_.data());
    resizer_.resize_planes(whole_.data(), layout_.side, look.side, out);
  }

 private:
  void write(std::span<const std::byte> planes, const Change& change, float* out) const {
    const std::size_t plane = layout_.plane_bytes();
    for (std::size_t c = 0; c < 3; ++c)
      for (int y = 0; y < layout_.side; ++y)
        write_row({planes.subspan(c % layout_.planes * plane, plane), normaliser_[c], y}, change, out + c * plane);
  }

  struct Row {
    std::span<const std::byte> plane;
    const std::array<float, 256>& map;
    int y;
  };

  void write_row(const Row& row, const Change& change, float* out_plane) const {
    const int side = layout_.side, from_y = row.y + change.dy;
    const auto at = [side](int y, int x) {
      return static_cast<std::size_t>(y) * static_cast<std::size_t>(side) + static_cast<std::size_t>(x);
    };
    for (int x = 0; x < side; ++x) {
      const int from_x = (change.flip ? side - 1 - x : x) + change.dx;
      const bool inside = from_y >= 0 && from_y < side && from_x >= 0 && from_x < side;
      out_plane[at(row.y, x)] = inside ? row.map[std::to_integer<std::size_t>(row.plane[at(from_y, from_x)])] : 0.0F;
    }
  }

  const PlaneLayout layout_;
  const PlaneNormaliser normaliser_;
  std::vector<float> whole_;
  Resizer resizer_;
};

}  // namespace

void PlaneMoments::add(std::span<const std::byte> record) {
  const std::span<const std::byte> planes = planes_of(layout_, record);
  const std::size_t plane = layout_.plane_bytes();
  for (std::size_t i = 0; i < planes.size(); ++i) ++histogram_[i / plane][std::to_integer<std::size_t>(planes[i])];
}

PlaneNormaliser PlaneMoments::normaliser() const {
  PlaneNormaliser result{};
  for (std::size_t c = 0; c < 3; ++c) {
    const std::array<std::uint64_t, 256>& histogram = histogram_[c % layout_.planes];
    double count = 0, sum = 0, squares = 0;
    for (std::size_t v = 0; v < 256; ++v) {
      const auto n = static_cast<double>(histogram[v]), value = static_cast<double>(v);
      count += n, sum += n * value, squares += n * value * value;
    }
    const double mean = sum / count, deviation = std::sqrt(std::max(squares / count - mean * mean, 1.0));
    for (std::size_t v = 0; v < 256; ++v)
      result[c][v] = static_cast<float>((static_cast<double>(v) - mean) / deviation);
  }
  return result;
}

std::unique_ptr<Decoder> plane_decoder(const PlaneLayout& layout, const PlaneNormaliser& normaliser) {
  return std::make_unique<Planes>(layout, normaliser);
}

}  // namespace syncopate::input
