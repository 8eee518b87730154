// Elementwise sum, mean, minimum, maximum and product of two vectors on the processor's widest vectors.
#include "kernel/reduce.hpp"

#include <cstring>
#include <type_traits>

#include "base/require.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/reduce.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

struct Sum {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
};

/// sum / divisor, one correctly rounded division.
struct Division {
  double divisor;
  template <class V>
  HWY_INLINE V operator()(V sum) const {
    const hn::DFromV<V> d;
    return hn::Div(sum, hn::Set(d, static_cast<hn::TFromD<decltype(d)>>(divisor)));
  }
};

/// The same quotient when the divisor is a power of two: its reciprocal is exact, so quotient and product are the same
/// number before rounding. Three times as fast.
struct Reciprocal {
  double reciprocal;
  template <class V>
  HWY_INLINE V operator()(V sum) const {
    const hn::DFromV<V> d;
    return hn::Mul(sum, hn::Set(d, static_cast<hn::TFromD<decltype(d)>>(reciprocal)));
  }
};

template <class Quotient>
struct Mean {
  Quotient quotient;
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return quotient(hn::Add(a, b));
  }
};

/// Unsigned, because signed overflow does not wrap around in C++.
template <class Bits>
struct WrappingSum {
  using In = hn::ScalableTag<Bits>;
  using Out = In;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> a, hn::Vec<In> b) const { return hn::Add(a, b); }
};

template <class Bits, bool kMinimum>
struct IntegerExtreme {
  using In = hn::ScalableTag<Bits>;
  using Out = In;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> a, hn::Vec<In> b) const {
    return kMinimum ? hn::Min(a, b) : hn::Max(a, b);
  }
};

/// Minimum and maximum on the bits of a floating-point type: flipping the magnitude of negative words orders all
/// numbers like integers, -0 before +0. Needs no conversion and does not depend on the processor's treatment of NaN and
/// zero.
template <class Bits, Bits kInfinity, bool kMinimum>
struct FloatExtreme {
  using In = hn::ScalableTag<Bits>;
  using Out = In;
  using V = hn::Vec<In>;
  static constexpr Bits kMagnitude = static_cast<Bits>(static_cast<std::make_unsigned_t<Bits>>(-1) >> 1);
  static constexpr Bits kNan = kInfinity | static_cast<Bits>((kMagnitude ^ kInfinity) + 1) >> 1;

  /// This function is its own inverse.
  static HWY_INLINE V flipped(V v) { return hn::Xor(v, hn::And(hn::BroadcastSignBit(v), hn::Set(In(), kMagnitude))); }
  HWY_INLINE V operator()(V a, V b) const {
    const In d;
    const V magnitude = hn::Set(d, kMagnitude);
    const V largest = hn::Max(hn::And(a, magnitude), hn::And(b, magnitude));
    const V x = flipped(a), y = flipped(b);
    const V extreme = flipped(kMinimum ? hn::Min(x, y) : hn::Max(x, y));
    return hn::IfThenElse(hn::Gt(largest, hn::Set(d, kInfinity)), hn::Set(d, kNan), extreme);
  }
};

template <bool kMinimum>
void extreme(DType dtype, std::byte* into, Operands o, std::size_t count) {
  using I16 = std::int16_t;
  using I64 = std::int64_t;
  constexpr I64 infinity = 0x7ff0000000000000;
  switch (dtype) {
    case DType::f32:
      return each(FloatExtreme<std::int32_t, 0x7f800000, kMinimum>(), into, count, o.a, o.b);
    case DType::f64:
      return each(FloatExtreme<I64, infinity, kMinimum>(), into, count, o.a, o.b);
    case DType::f16:
      return each(FloatExtreme<I16, 0x7c00, kMinimum>(), into, count, o.a, o.b);
    case DType::bf16:
      return each(FloatExtreme<I16, 0x7f80, kMinimum>(), into, count, o.a, o.b);
    case DType::i32:
      return each(IntegerExtreme<std::int32_t, kMinimum>(), into, count, o.a, o.b);
    case DType::i64:
      return each(IntegerExtreme<I64, kMinimum>(), into, count, o.a, o.b);
    case DType::u8:
      return each(IntegerExtreme<std::uint8_t, kMinimum>(), into, count, o.a, o.b);
  }
}

bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

void sum(const Reduction& r, std::byte* into, Operands o, std::size_t count) {
  if (r.dtype == DType::i32) return each(WrappingSum<std::uint32_t>(), into, count, o.a, o.b);
  if (r.dtype == DType::i64) return each(WrappingSum<std::uint64_t>(), into, count, o.a, o.b);
  if (r.dtype == DType::u8) return each(WrappingSum<std::uint8_t>(), into, count, o.a, o.b);
  if (r.divisor == 1) return Floating<Sum>{r.dtype, {}}(into, count, o.a, o.b);
  if (is_power_of_two(r.divisor))
    return Floating<Mean<Reciprocal>>{r.dtype, {{1.0 / r.divisor}}}(into, count, o.a, o.b);
  Floating<Mean<Division>>{r.dtype, {{1.0 * r.divisor}}}(into, count, o.a, o.b);
}

void combine_lanes(const Reduction& r, std::byte* into, Operands o, std::size_t count) {
  if (r.op == ReduceOp::min) return extreme<true>(r.dtype, into, o, count);
  if (r.op == ReduceOp::max) return extreme<false>(r.dtype, into, o, count);
  if (r.op == ReduceOp::product) return Floating<Product>{r.dtype, {}}(into, count, o.a, o.b);
  sum(r, into, o, count);
}

void divide_lanes(const Reduction& r, std::byte* into, std::size_t count) {
  const std::byte* from = into;
  if (is_power_of_two(r.divisor)) return Floating<Reciprocal>{r.dtype, {1.0 / r.divisor}}(into, count, from);
  Floating<Division>{r.dtype, {1.0 * r.divisor}}(into, count, from);
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(combine_lanes);
HWY_EXPORT(divide_lanes);

namespace {

void check(const Reduction& r) {
  constexpr int limit = 1 << 24;  // every such integer is an f32
  const bool divides = r.op == ReduceOp::sum || r.op == ReduceOp::average;
  base::require(r.divisor == 1 || (divides && r.divisor > 1 && r.divisor <= limit),
                "divisor {} with {}: allowed are 1 to {} with sum and average, 1 with min, max and product", r.divisor,
                name_of(r.op), limit);
}

/// Integers are averaged rarely and processors divide them one by one.
template <class T>
void divide_integers(std::byte* into, std::size_t count, int divisor) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, into + i * sizeof value, sizeof value);
    value = static_cast<T>(value / divisor);
    std::memcpy(into + i * sizeof value, &value, sizeof value);
  }
}

/// Integers are multiplied rarely, and Highway has no product of bytes. `T` is unsigned: signed overflow does not wrap
/// around in C++.
template <class T>
void multiply_integers(std::byte* into, Operands o, std::size_t count) {
  for (std::size_t at = 0; at < count * sizeof(T); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, o.a + at, sizeof a);
    std::memcpy(&b, o.b + at, sizeof b);
    a = static_cast<T>(a * b);
    std::memcpy(into + at, &a, sizeof a);
  }
}

void multiply_integers(DType dtype, std::byte* into, Operands o, std::size_t count) {
  if (dtype == DType::i32) return multiply_integers<std::uint32_t>(into, o, count);
  if (dtype == DType::i64) return multiply_integers<std::uint64_t>(into, o, count);
  multiply_integers<std::uint8_t>(into, o, count);
}

}  // namespace

void combine(const Reduction& reduction, std::byte* into, Operands operands, std::size_t count) {
  check(reduction);
  if (reduction.op == ReduceOp::product && is_integer(reduction.dtype))
    return multiply_integers(reduction.dtype, into, operands, count);
  if (reduction.divisor == 1 || !is_integer(reduction.dtype))
    return HWY_DYNAMIC_DISPATCH(combine_lanes)(reduction, into, operands, count);
  // In pieces that stay in the first-level cache between the two passes.
  constexpr std::size_t piece = 1024;
  const std::size_t size = size_of(reduction.dtype);
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t n = count - begin < piece ? count - begin : piece, at = begin * size;
    HWY_DYNAMIC_DISPATCH(combine_lanes)(reduction, into + at, {operands.a + at, operands.b + at}, n);
    finish(reduction, into + at, n);
  }
}

void finish(const Reduction& reduction, std::byte* into, std::size_t count) {
  check(reduction);
  if (reduction.divisor == 1) return;
  if (reduction.dtype == DType::i32) return divide_integers<std::int32_t>(into, count, reduction.divisor);
  if (reduction.dtype == DType::i64) return divide_integers<std::int64_t>(into, count, reduction.divisor);
  if (reduction.dtype == DType::u8) return divide_integers<std::uint8_t>(into, count, reduction.divisor);
  HWY_DYNAMIC_DISPATCH(divide_lanes)(reduction, into, count);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
