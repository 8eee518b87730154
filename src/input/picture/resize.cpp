// Resizing in two passes: first combines rows, which are contiguous in memory, then the pixels of each row.
#include "input/picture/resize.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate::input {
namespace {

using Four = float __attribute__((vector_size(16)));
static_assert(sizeof(Four) == 4 * sizeof(float));

/// The first source row of one row of the result, and the distance between source rows.
template <class Value>
struct Rows {
  const Value* from;
  std::size_t pitch;
};

/// row[0, n) = sum of weights[t] * from[t * pitch + ...].
template <class Value>
void combine(const Rows<Value>& rows, const Taps& taps, int y, std::span<float> row) {
  const auto [first, pitch] = rows;
  const Value* from = first;
  const float* weights = taps.weights(y);
  const std::size_t n = row.size();
  float* to = row.data();
  if (taps.count() == 2) {
    const float a = weights[0], b = weights[1];
    const Value* next = from + pitch;
    for (std::size_t i = 0; i < n; ++i) to[i] = a * static_cast<float>(from[i]) + b * static_cast<float>(next[i]);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) to[i] = weights[0] * static_cast<float>(from[i]);
  for (int t = 1; t < taps.count(); ++t) {
    from += pitch;
    if (weights[t] == 0) continue;
    for (std::size_t i = 0; i < n; ++i) to[i] += weights[t] * static_cast<float>(from[i]);
  }
}

Four loaded(const float* from) {
  Four four;
  __builtin_memcpy(&four, from, sizeof four);
  return four;
}

}  // namespace

void Taps::fit(const Extent& extent, int side) {
  const double scale = extent.length / side, reach = std::max(scale, 1.0);
  const int low = std::max(0, static_cast<int>(std::floor(extent.begin)));
  const int high = std::min(extent.limit, static_cast<int>(std::ceil(extent.begin + extent.length)));
  count_ = std::min(static_cast<int>(std::floor(2 * reach)) + (scale > 1 ? 1 : 0), high - low);
  first_.assign(static_cast<std::size_t>(side), 0);
  weights_.assign(static_cast<std::size_t>(side) * static_cast<std::size_t>(count_), 0.0F);
  for (int i = 0; i < side; ++i) {
    const double centre = extent.begin + (i + 0.5) * scale - 0.5;
    const int wanted = static_cast<int>(std::floor(centre - reach)) + 1;
    const int first = std::clamp(wanted, low, high - count_);
    first_[static_cast<std::size_t>(i)] = first;
    float* const weights = &weights_[static_cast<std::size_t>(i) * static_cast<std::size_t>(count_)];
    double sum = 0;
    for (int t = 0; t < count_; ++t) sum += std::max(0.0, 1 - std::abs(first + t - centre) / reach);
    for (int t = 0; t < count_; ++t)
      weights[t] =
          static_cast<float>(sum > 0 ? std::max(0.0, 1 - std::abs(first + t - centre) / reach) / sum : 1.0 / count_);
  }
}

void Resizer::resize(const Cut& cut, const Result& result, float* out) {
  const auto& [side, mirrored, normaliser] = result;
  across_.fit({cut.box.x, cut.box.width, cut.size.width}, side);
  down_.fit({cut.box.y, cut.box.height, cut.size.height}, side);
  const int begin = across_.first(0), end = across_.first(side - 1) + across_.count();
  row_.resize(4 * static_cast<std::size_t>(end - begin));
  const std::size_t pitch = 4 * static_cast<std::size_t>(cut.size.width);
  const auto plane = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  const Four scale{normaliser.scale[0], normaliser.scale[1], normaliser.scale[2], 0};
  const Four offset{normaliser.offset[0], normaliser.offset[1], normaliser.offset[2], 0};
  const int taps = across_.count();
  for (int y = 0; y < side; ++y) {
    const std::uint8_t* from = &cut.pixels[static_cast<std::size_t>(down_.first(y)) * pitch];
    combine(Rows{from + 4 * begin, pitch}, down_, y, row_);
    float* to = out + static_cast<std::size_t>(y) * static_cast<std::size_t>(side) + (mirrored ? side - 1 : 0);
    for (int x = 0; x < side; ++x, to += mirrored ? -1 : 1) {
      const float* pixels = &row_[4 * static_cast<std::size_t>(across_.first(x) - begin)];
      const float* weights = across_.weights(x);
      Four sum = weights[0] * loaded(pixels);
      for (int t = 1; t < taps; ++t) sum += weights[t] * loaded(pixels + 4 * t);
      sum = sum * scale + offset;
      to[0] = sum[0];
      to[plane] = sum[1];
      to[2 * plane] = sum[2];
    }
  }
}

void Resizer::resize_planes(const float* in, int from, int side, float* out) {
  across_.fit({0, static_cast<double>(from), from}, side);
  const auto width = static_cast<std::size_t>(from);
  row_.resize(width);
  for (int c = 0; c < 3; ++c, in += width * width)
    for (int y = 0; y < side; ++y, out += side) {
      combine(Rows{in + static_cast<std::size_t>(across_.first(y)) * width, width}, across_, y, row_);
      for (int x = 0; x < side; ++x) {
        const float* pixels = &row_[static_cast<std::size_t>(across_.first(x))];
        float sum = 0;
        for (int t = 0; t < across_.count(); ++t) sum += across_.weights(x)[t] * pixels[t];
        out[x] = sum;
      }
    }
}

}  // namespace syncopate::input
