// Vectors of one instruction set: the loop over memory, half precision in lanes, and arithmetic lifted to each type.
// Highway compiles this text once for every instruction set, hence the guard that toggles instead of `#pragma once`.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "syncopate/dtype.hpp"

#if defined(SYNCOPATE_KERNEL_CPU_LANES_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCOPATE_KERNEL_CPU_LANES_HPP
#undef SYNCOPATE_KERNEL_CPU_LANES_HPP
#else
#define SYNCOPATE_KERNEL_CPU_LANES_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// --- Memory -----------------------------------------------------------------------------------------------------

/// The element address is never dereferenced as T: every load and store below is unaligned and may alias.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
}
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, std::byte* into) {
  hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D>*>(into));
}

/// The memory of a full vector for the last elements; the rest is zero.
struct Room {
  HWY_ALIGN_MAX std::byte bytes[HWY_MAX_BYTES] = {};
  Room() = default;
  Room(const std::byte* from, std::size_t count) { std::memcpy(bytes, from, count); }
};

// An elementwise function F names the vectors it works on (F::In, F::Out: tags with equally many lanes) and maps
// vectors of In to one of Out. Fewer elements than lanes pass through the same instructions in a `Room`, so the result
// of an element never depends on its position.

template <class F, class... From>
HWY_INLINE void few(const F& f, std::byte* into, std::size_t count, From... from) {
  const typename F::In in;
  const typename F::Out out;
  Room room;
  store(f(load(in, Room(from, count * sizeof(hn::TFromD<typename F::In>)).bytes)...), out, room.bytes);
  std::memcpy(into, room.bytes, count * sizeof(hn::TFromD<typename F::Out>));
}

/// into[i] = f(from[i]...), 0 <= i < count. `into` may equal a `from`: each vector is read before it is written.
/// Physical limit: every operand moves once. A core loads two vectors and stores one per cycle from its first cache
/// (3 x 64 bytes x clock for a sum) and a fraction of that from the others; a sum needs two instructions more.
template <class F, class... From>
HWY_INLINE void each(const F& f, std::byte* into, std::size_t count, From... from) {
  const typename F::In in;
  const typename F::Out out;
  constexpr std::size_t in_size = sizeof(hn::TFromD<typename F::In>), out_size = sizeof(hn::TFromD<typename F::Out>);
  const std::size_t lanes = hn::Lanes(in);
  std::size_t i = 0;
  // A store across two cache lines costs twice; with long vectors on odd addresses that would be every store.
  const std::size_t vector_bytes = lanes * out_size;
  const std::size_t odd = reinterpret_cast<std::uintptr_t>(into) % vector_bytes;
  if (odd % out_size == 0 && odd != 0 && count >= 16 * lanes) {
    i = (vector_bytes - odd) / out_size;
    few(f, into, i, from...);
  }
  for (; i + lanes <= count; i += lanes) store(f(load(in, from + i * in_size)...), out, into + i * out_size);
  if (i < count) few(f, into + i * out_size, count - i, from + i * in_size...);
}

// --- Half precision in lanes: bit for bit base/half.hpp ------------------------------------------------------------

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using Word = hn::Rebind<std::uint16_t, F32>;  ///< one 16-bit word per lane of an F32

// Processors of the AVX2 generation convert f16 by one instruction.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
HWY_INLINE hn::Vec<F32> from_f16(hn::Vec<Word> v) {
  return hn::PromoteTo(F32(), hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), v));
}
HWY_INLINE hn::Vec<Word> to_f16(hn::Vec<F32> v) {
  return hn::BitCast(Word(), hn::DemoteTo(hn::Rebind<hwy::float16_t, F32>(), v));
}
#else
HWY_INLINE hn::Vec<F32> from_f16(hn::Vec<Word> v) {
  const U32 u;
  const I32 s;
  const auto word = hn::PromoteTo(s, v);
  const auto magnitude = hn::And(word, hn::Set(s, 0x7fff));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(word, magnitude));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(s, 112 << 23));
  // Infinity and NaN: the largest exponent; a NaN becomes quiet.
  const auto quiet = hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(s, 0x7c00)), hn::Set(s, 0x00400000));
  const auto beyond = hn::Or(hn::Or(shifted, hn::Set(s, 0x7f800000)), quiet);
  // Subnormal: (2^-14 + fraction * 2^-24) - 2^-14, exact and without a subnormal operand.
  const auto least = hn::Set(s, 113 << 23);
  const auto lifted = hn::BitCast(F32(), hn::Or(shifted, least));
  const auto subnormal = hn::BitCast(s, hn::Sub(lifted, hn::BitCast(F32(), least)));
  auto bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(s, 0x7bff)), beyond, normal);
  bits = hn::IfThenElse(hn::Gt(hn::Set(s, 0x0400), magnitude), subnormal, bits);
  return hn::BitCast(F32(), hn::BitCast(u, hn::Or(bits, sign)));
}
HWY_INLINE hn::Vec<Word> to_f16(hn::Vec<F32> v) {
  const I32 s;
  const auto bits = hn::BitCast(s, v);
  const auto magnitude = hn::And(bits, hn::Set(s, 0x7fffffff));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(s, 0x8000));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(s, 1));
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, odd), hn::Set(s, 0xfff - (112 << 23))));
  // Subnormal: adding 0.5 leaves fraction * 2^-24 in the low bits of the sum, rounded by the addition itself.
  const auto half = hn::Set(F32(), 0.5f);
  const auto sum = hn::BitCast(s, hn::Add(hn::BitCast(F32(), magnitude), half));
  const auto subnormal = hn::Sub(sum, hn::BitCast(s, half));
  const auto payload = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(s, 0x3ff)), hn::Set(s, 0x7e00));
  const auto is_nan = hn::Gt(magnitude, hn::Set(s, 0x7f800000));
  auto word = hn::IfThenElse(hn::Gt(hn::Set(s, 113 << 23), magnitude), subnormal, normal);
  word = hn::IfThenElse(hn::Gt(magnitude, hn::Set(s, 0x477fffff)), hn::Set(s, 0x7c00), word);
  word = hn::IfThenElse(is_nan, payload, word);
  return hn::DemoteTo(Word(), hn::Or(word, sign));
}
#endif

HWY_INLINE hn::Vec<F32> from_bf16(hn::Vec<Word> v) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), v)));
}
/// Rounds all but NaNs with a payload, whose carry could leave the NaNs.
HWY_INLINE hn::Vec<Word> rounded_to_bf16(hn::Vec<F32> v) {
  const U32 u;
  const auto bits = hn::BitCast(u, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
  const auto word = hn::ShiftRight<16>(hn::Add(hn::Add(bits, odd), hn::Set(u, 0x7fff)));
  return hn::DemoteTo(Word(), hn::BitCast(I32(), word));
}

// --- Arithmetic lifted to each element type ------------------------------------------------------------------------

/// Replaces every NaN by the one quiet NaN: processors disagree on which operand's payload survives.
template <class V>
HWY_INLINE V one_nan(V v) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> u;
  using Bits = hn::TFromD<decltype(u)>;
  constexpr Bits nan = sizeof(Bits) == 4 ? Bits{0x7fc00000u} : static_cast<Bits>(0x7ff8000000000000u);
  return hn::IfThenElse(hn::IsNaN(v), hn::BitCast(d, hn::Set(u, nan)), v);
}

template <class T, class Arithmetic>
struct OnFloat {
  using In = hn::ScalableTag<T>;
  using Out = In;
  Arithmetic arithmetic;
  template <class... V>
  HWY_INLINE hn::Vec<Out> operator()(V... v) const {
    return one_nan(arithmetic(v...));
  }
};
template <class Arithmetic>
struct OnF16 {
  using In = Word;
  using Out = Word;
  Arithmetic arithmetic;
  template <class... V>
  HWY_INLINE hn::Vec<Out> operator()(V... v) const {
    return to_f16(one_nan(arithmetic(from_f16(v)...)));
  }
};
template <class Arithmetic>
struct OnBf16 {
  using In = Word;
  using Out = Word;
  Arithmetic arithmetic;
  template <class... V>
  HWY_INLINE hn::Vec<Out> operator()(V... v) const {
    return rounded_to_bf16(one_nan(arithmetic(from_bf16(v)...)));
  }
};

/// A Floating runs `each` with one arithmetic on whichever floating-point type the elements have.
template <class Arithmetic>
struct Floating {
  DType dtype;
  Arithmetic arithmetic;
  template <class... From>
  void operator()(std::byte* into, std::size_t count, From... from) const {
    switch (dtype) {
      case DType::f32:
        return each(OnFloat<float, Arithmetic>{arithmetic}, into, count, from...);
      case DType::f64:
        return each(OnFloat<double, Arithmetic>{arithmetic}, into, count, from...);
      case DType::f16:
        return each(OnF16<Arithmetic>{arithmetic}, into, count, from...);
      case DType::bf16:
        return each(OnBf16<Arithmetic>{arithmetic}, into, count, from...);
      case DType::i32:
      case DType::i64:
      case DType::u8:
        assert(false);  // callers do not pass integers
    }
  }
};

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SYNCOPATE_KERNEL_CPU_LANES_HPP
