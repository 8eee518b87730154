// Combining two vectors elementwise, and dividing a finished sum by the number of ranks.
#pragma once

#include <cstddef>

#include "syncopate/dtype.hpp"

namespace syncopate::kernel {

/// The operation on each pair of elements: `op`, then division by `divisor`.
struct Reduction {
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;  ///< `average` adds like `sum`; the last step sets the divisor
  int divisor = 1;              ///< 1...2^24; other than 1 only for sum and average
};

// The law, the same bits on every instruction set and for both orders of the operands:
//   f32, f64    IEEE 754, round to nearest even: fl(a + b) or fl(a b), then fl(that / divisor); nothing is fused.
//   f16, bf16   computed as f32 (sum or product, then quotient) and rounded once, to nearest even.
//   i32, i64    sums and products wrap around (two's complement); the quotient truncates toward zero.
//   u8          sums and products wrap around (modulo 256); the quotient truncates.
//   min, max    IEEE 754-2019 minimum and maximum: -0 < +0; NaN if either operand is NaN.
//   NaN         a result that is NaN is THE quiet NaN of its type: sign 0, payload 0 (f32 0x7fc00000).
// Addresses need no alignment. `into` may be exactly `a` or `b`, but must not overlap them otherwise.
// All throw Misuse for a divisor that is not allowed. Safe from any thread; nothing allocates.

/// Two vectors of equal length.
struct Operands {
  const std::byte* a;
  const std::byte* b;
};

/// into = a op b, over `count` elements.
void combine(const Reduction& reduction, std::byte* into, Operands operands, std::size_t count);

/// into = into op from, over `count` elements.
inline void reduce(const Reduction& reduction, std::byte* into, const std::byte* from, std::size_t count) {
  combine(reduction, into, {into, from}, count);
}

/// into = into / divisor, over `count` elements: the last step of an average if nothing is left to add.
void finish(const Reduction& reduction, std::byte* into, std::size_t count);

}  // namespace syncopate::kernel
