// Half precision: the nearest word for every float, one by one and by vectors.
#include "base/half.hpp"

#include <cmath>
#include <vector>

#include "fuzz/target.hpp"
#include "kernel/cast.hpp"

namespace syncopate::fuzz::target {

namespace {

/// No neighbour of `word` is nearer to `value`, nor as near and even.
template <class Widen>
bool is_nearest(float value, std::uint16_t word, Widen widen) {
  const double widened = widen(word);
  if (std::isnan(value)) return std::isnan(widened);
  if (std::signbit(value) != std::signbit(widened)) return false;
  const auto infinite = [](double distance) { return std::isfinite(distance) ? distance : 1e300; };
  const double distance = std::isinf(widened) ? 0 : std::abs(widened - value);
  for (const int step : {-1, 1}) {
    const auto neighbour = static_cast<std::uint16_t>(word + step);
    const double other = widen(neighbour);
    if (((neighbour ^ word) & 0x8000) != 0 || !std::isfinite(other) || std::isinf(widened)) continue;
    const double away = infinite(std::abs(other - value));
    if (away < distance || (away == distance && (word & 1) != 0)) return false;
  }
  return true;
}

}  // namespace

void half(Input input) {
  if (input.size() < sizeof(float)) return;
  std::vector<float> values(input.size() / sizeof(float));
  std::memcpy(values.data(), input.data(), values.size() * sizeof(float));
  std::vector<std::uint16_t> f16(values.size()), bf16(values.size());
  const auto* from = reinterpret_cast<const std::byte*>(values.data());
  kernel::cast({DType::f32, DType::f16}, from, reinterpret_cast<std::byte*>(f16.data()), values.size());
  kernel::cast({DType::f32, DType::bf16}, from, reinterpret_cast<std::byte*>(bf16.data()), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    hold(f16[i] == base::to_f16(values[i]) && bf16[i] == base::to_bf16(values[i]), "vectors do as single values do");
    hold(is_nearest(values[i], f16[i], base::from_f16), "f16 is the nearest");
    hold(is_nearest(values[i], bf16[i], base::from_bf16), "bf16 is the nearest");
  }
}

}  // namespace syncopate::fuzz::target
