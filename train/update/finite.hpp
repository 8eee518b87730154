// Whether a gradient is finite, at a cost that does not grow with it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace syncopate::train {

/// One pass without a branch: adding one to an exponent of ones (infinity, NaN) overflows into the sign, which was
/// cleared.
[[nodiscard]] inline bool all_finite(std::span<const float> values) {
  std::uint32_t overflow = 0;
  for (const float value : values) overflow |= (std::bit_cast<std::uint32_t>(value) & 0x7fff'ffffU) + 0x0080'0000U;
  return overflow >> 31 == 0;
}

/// A weight's gradient as rows (outputs) x columns (inputs) x `inner` (places of a kernel).
struct GradientShape {
  std::size_t columns = 1, inner = 1;
};

/// Up to 1 MiB all of the gradient is read, beyond it the first row and the first column: each element is a sum over
/// samples of (an output's error) x (an input), so that one factor that is not finite spoils its whole row or column.
/// What this overlooks, a sum of finite products that overflows, makes the next step's loss infinite.
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
