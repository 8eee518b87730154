// Tests whether a gradient is finite, at a bounded cost.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace syncopate::train {

/// One branch-free pass: adding one to an exponent of all ones (infinity, NaN) carries into the cleared sign bit.
[[nodiscard]] inline bool all_finite(std::span<const float> values) {
  std::uint32_t overflow = 0;
  for (const float value : values) overflow |= (std::bit_cast<std::uint32_t>(value) & 0x7fff'ffffU) + 0x0080'0000U;
  return overflow >> 31 == 0;
}

/// A weight's gradient as rows (outputs) x columns (inputs) x `inner` (places of a kernel).
struct GradientShape {
  std::size_t columns = 1, inner = 1;
};

/// Up to 1 MiB the whole gradient is read, above that the first row and the first column: each element is a sum over
/// samples of (an output's error) x (an input), so a factor that is not finite spoils its whole row or column. This
/// misses a sum of finite products that overflows; the next step's loss is then infinite.
[[nodiscard]] inline bool looks_finite(std::span<const float> gradient, const GradientShape& shape) {
  constexpr std::size_t kRead = std::size_t{1} << 18;
  if (gradient.size() <= kRead) return all_finite(gradient);
  const std::size_t row = shape.columns * shape.inner;
  bool finite = all_finite(gradient.first(row));
  for (std::size_t at = row; at < gradient.size(); at += row)
    finite = finite && all_finite(gradient.subspan(at, shape.inner));
  return finite;
}

}  // namespace syncopate::train
