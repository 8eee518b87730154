// Conversion between f32 and f16, bf16 and f64 on the processor's widest vectors.
#include "kernel/cast.hpp"

#include <cstring>

#include "base/require.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/cast.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

struct FromF16 {
  using In = Word;
  using Out = F32;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> v) const { return from_f16(v); }
};

struct ToF16 {
  using In = F32;
  using Out = Word;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> v) const { return to_f16(v); }
};

/// A bf16 NaN may be signalling; widening makes it quiet as it does for the other types.
struct FromBf16 {
  using In = Word;
  using Out = F32;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> v) const {
    const U32 u;
    const auto wide = from_bf16(v);
    const auto is_nan = hn::RebindMask(u, hn::IsNaN(wide));
    return hn::BitCast(F32(), hn::Or(hn::BitCast(u, wide), hn::IfThenElseZero(is_nan, hn::Set(u, 0x00400000u))));
  }
};

/// A NaN's payload is cut before rounding, so that no carry turns it into infinity or zero.
struct ToBf16 {
  using In = F32;
  using Out = Word;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> v) const {
    const U32 u;
    const auto bits = hn::BitCast(u, v);
    const auto cut = hn::Or(hn::And(bits, hn::Set(u, 0xffff0000u)), hn::Set(u, 0x00400000u));
    const auto is_nan = hn::RebindMask(u, hn::IsNaN(v));
    return rounded_to_bf16(hn::BitCast(F32(), hn::IfThenElse(is_nan, cut, bits)));
  }
};

using F64 = hn::ScalableTag<double>;
using HalfF32 = hn::Rebind<float, F64>;

struct FromF64 {
  using In = F64;
  using Out = HalfF32;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> v) const {
#if HWY_TARGET == HWY_SCALAR  // Highway's own saturates to the largest finite number
    return hn::Set(Out(), static_cast<float>(hn::GetLane(v)));
#else
    return hn::DemoteTo(Out(), v);
#endif
  }
};

struct ToF64 {
  using In = HalfF32;
  using Out = F64;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> v) const { return hn::PromoteTo(Out(), v); }
};

void narrow(DType to, const std::byte* in, std::byte* out, std::size_t count) {
  if (to == DType::f16) return each(ToF16(), out, count, in);
  if (to == DType::bf16) return each(ToBf16(), out, count, in);
  each(ToF64(), out, count, in);
}

void widen(DType from, const std::byte* in, std::byte* out, std::size_t count) {
  if (from == DType::f16) return each(FromF16(), out, count, in);
  if (from == DType::bf16) return each(FromBf16(), out, count, in);
  each(FromF64(), out, count, in);
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(narrow);
HWY_EXPORT(widen);

void cast(Conversion types, const std::byte* in, std::byte* out, std::size_t count) {
  const auto [from, to] = types;
  if (from == to) {
    if (count > 0) std::memcpy(out, in, count * size_of(from));
    return;
  }
  const auto casts = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64; };
  const bool from_f32 = from == DType::f32 && casts(to), to_f32 = to == DType::f32 && casts(from);
  base::require(from_f32 || to_f32, "no cast from {} to {}: allowed are f32 to and from f16, bf16 and f64",
                name_of(from), name_of(to));
  if (from_f32) return HWY_DYNAMIC_DISPATCH(narrow)(to, in, out, count);
  HWY_DYNAMIC_DISPATCH(widen)(from, in, out, count);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
