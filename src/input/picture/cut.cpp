// Chooses the part of a picture that is used, by draws keyed by seed, epoch and sample.
#include "input/picture/cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "syncopate/error.hpp"

namespace syncopate::input {
namespace {

constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;
constexpr std::uint64_t kCutDraws = 0x63757473;  ///< "cuts"
constexpr int kAttempts = 10;
constexpr double kLeastArea = 0.08, kMostRatio = 4.0 / 3;

base::CounterRandom random_of(const PictureTransform& look) { return {look.seed, kCutDraws, look.epoch, look.sample}; }

Box middle(const Size& picture, double width, double height) {
  return {(picture.width - width) / 2, (picture.height - height) / 2, width, height};
}

}  // namespace

void require_reasonable(std::uint64_t width, std::uint64_t height) {
  if (width == 0 || height == 0 || width > kMostPixels || height > kMostPixels || width * height > kMostPixels)
    throw Corrupt(fmt::format("declares {} x {} pixels; allowed: 1 to {} in total", width, height, kMostPixels));
}

Box box_of(const Size& picture, const PictureTransform& look) {
  const double shorter = std::min(picture.width, picture.height);
  if (!look.augment) return middle(picture, shorter * 7 / 8, shorter * 7 / 8);
  const base::CounterRandom random = random_of(look);
  const double area = static_cast<double>(picture.width) * picture.height;
  for (std::uint64_t draw = 1; draw <= 5 * kAttempts; draw += 5) {
    const double share = kLeastArea + (1 - kLeastArea) * random.uniform(draw);
    const double ratio = 1 + (kMostRatio - 1) * random.uniform(draw + 1);
    const bool upright = (random.bits(draw + 2) >> 63) != 0;  // no logarithm: its last bit differs between machines
    const double wide = std::round(std::sqrt(area * share * (upright ? 1 / ratio : ratio)));
    const double high = std::round(std::sqrt(area * share * (upright ? ratio : 1 / ratio)));
    if (wide < 1 || high < 1 || wide > picture.width || high > picture.height) continue;
    return {std::floor(random.uniform(draw + 3) * (picture.width - wide + 1)),
            std::floor(random.uniform(draw + 4) * (picture.height - high + 1)), wide, high};
  }
  return middle(picture, std::min<double>(picture.width, picture.height * kMostRatio),
                std::min<double>(picture.height, picture.width * kMostRatio));
}

bool is_mirrored(const PictureTransform& look) {
  return look.augment && look.mirror && (random_of(look).bits(0) >> 63) != 0;
}

int eighths_for(const Box& box, int side) {
  for (const int eighths : {1, 2, 4})
    if (box.width * eighths >= 8.0 * side && box.height * eighths >= 8.0 * side) return eighths;
  return 8;
}

void turn_upright(Cut& cut, int orientation) {
  if (orientation <= 1) return;
  const bool swaps = orientation >= 5;
  const bool mirrors_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirrors_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const auto [width, height] = cut.size;
  const Size upright = swaps ? Size{height, width} : cut.size;
  std::vector<std::uint8_t> turned(cut.pixels.size());
  std::uint8_t* to = turned.data();
  for (int y = 0; y < upright.height; ++y)
    for (int x = 0; x < upright.width; ++x, to += 4) {
      const int across = swaps ? y : x, down = swaps ? x : y;
      const auto from_x = static_cast<std::size_t>(mirrors_x ? width - 1 - across : across);
      const auto from_y = static_cast<std::size_t>(mirrors_y ? height - 1 - down : down);
      std::memcpy(to, &cut.pixels[4 * (from_y * static_cast<std::size_t>(width) + from_x)], 4);
    }
  cut.pixels = std::move(turned);
  cut.size = upright;
}

}  // namespace syncopate::input
