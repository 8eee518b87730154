// The squared Euclidean norm of a vector, and scaling it, for clipping by the global norm.
#pragma once

#include <cstddef>

#include "syncopate/dtype.hpp"

namespace syncopate::kernel {

/// Sum of x_i^2 in f64: element i is added to partial sum i mod 32, in order of i; then the 32 are added pairwise
/// (j and j+16, j and j+8, ... j+1). This order, and so every bit, is the same on every instruction set. Infinite if
/// an f64 square or the sum overflows; NaN if an element is. Throws Misuse for integers.
[[nodiscard]] double squared_norm(DType dtype, const std::byte* in, std::size_t count);

/// into = into * factor, over `count` elements: one rounding in f64; in f32 the factor is rounded to f32 first; f16
/// and bf16 are computed as f32 and rounded once. NaN as in reduce.hpp. Throws Misuse for integers.
void scale(DType dtype, std::byte* into, std::size_t count, double factor);

}  // namespace syncopate::kernel
