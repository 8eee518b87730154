// Converting vectors between f32 and the other floating-point types.
#pragma once

#include <cstddef>

#include "syncopate/dtype.hpp"

namespace syncopate::kernel {

/// The types on both sides of a conversion.
struct Conversion {
  DType from;
  DType to;
};

/// out = in, over `count` elements, between f32 and f16, bf16 or f64 in either direction, or between equal types (a
/// copy). Narrowing rounds to nearest even and overflows to infinity; subnormals are kept; a NaN becomes quiet and
/// keeps its sign and the upper bits of its payload. The same bits on every instruction set.
/// No alignment needed; `in` and `out` must not overlap. Throws Misuse for any other pair of types.
void cast(Conversion types, const std::byte* in, std::byte* out, std::size_t count);

}  // namespace syncopate::kernel
