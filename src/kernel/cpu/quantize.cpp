// Quantising, packing and their inverses on the processor's widest vectors.
#include "kernel/quantize.hpp"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/quantize.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

using Field = hn::Rebind<std::uint8_t, F32>;  ///< one field per lane of an F32

/// 1.5 * 2^23: a sum with it is rounded to a whole number, to nearest even, which its lowest bits hold.
constexpr float kWhole = 12582912.0F;

/// 2^24 times kernel::dither of the indices from `first` on.
HWY_INLINE hn::Vec<I32> dithers(std::uint64_t word, std::size_t first) {
  const U32 u;
  const I32 s;
  const auto low = hn::Set(u, static_cast<std::uint32_t>(word) + static_cast<std::uint32_t>(first));
  auto x = hn::Add(hn::Iota(u, 0), low);
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(u, 0x21f0aaad));
  x = hn::Xor(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(u, static_cast<std::uint32_t>(word >> 32)));
  x = hn::Mul(x, hn::Set(u, 0xd35a2d97));
  x = hn::Xor(x, hn::ShiftRight<15>(x));
  return hn::BitCast(s, hn::Xor(hn::ShiftRight<8>(x), hn::Set(u, 0x800000)));
}

struct Quantize {
  const LevelScale& scale;
  float inverse;
  /// The fields of the elements from `first` on.
  HWY_INLINE hn::Vec<Field> operator()(hn::Vec<F32> x, std::size_t first) const {
    const F32 d;
    const I32 s;
    const auto highest = hn::Set(d, static_cast<float>(scale.highest));
    auto level = hn::Mul(x, hn::Set(d, inverse));
    level = hn::Min(hn::Max(level, hn::Neg(highest)), highest);
    if (scale.is_dithered) {
      // At most 127 * 2^24 + 2^24 - 1, the largest number that fits.
      const auto fine = hn::NearestInt(hn::Mul(level, hn::Set(d, 0x1p24F)));
      const auto whole = hn::ShiftRight<24>(hn::Add(fine, dithers(scale.word, first)));
      return hn::DemoteTo(Field(), hn::Add(whole, hn::Set(s, scale.highest)));
    }
    const auto bits = hn::BitCast(s, hn::Add(level, hn::Set(d, kWhole)));
    const std::int32_t zero = std::bit_cast<std::int32_t>(kWhole) - scale.highest;
    return hn::DemoteTo(Field(), hn::Sub(bits, hn::Set(s, zero)));
  }
};

void quantize_lanes(const LevelScale& scale, const float* in, std::size_t count, std::uint8_t* fields) {
  const Quantize f{scale, 1 / scale.unit};
  const F32 d;
  const Field into;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, in + i), i), into, fields + i);
  if (i == count) return;
  const Room last(reinterpret_cast<const std::byte*>(in + i), (count - i) * sizeof(float));
  Room quantized;
  store(f(load(d, last.bytes), i), into, quantized.bytes);
  std::memcpy(fields + i, quantized.bytes, count - i);
}

struct Dequantize {
  using In = Field;
  using Out = F32;
  const LevelScale& scale;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> fields) const {
    const I32 s;
    const auto level = hn::Sub(hn::PromoteTo(s, fields), hn::Set(s, scale.highest));
    return one_nan(hn::Mul(hn::ConvertTo(Out(), level), hn::Set(Out(), scale.unit)));
  }
};

struct SignField {
  using In = F32;
  using Out = Field;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> x) const {
    const U32 u;
    return hn::DemoteTo(Out(), hn::BitCast(I32(), hn::ShiftRight<31>(hn::BitCast(u, x))));
  }
};

struct Choose {
  using In = Field;
  using Out = F32;
  const Choice& choice;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> fields) const {
    const Out d;
    const I32 s;
    const auto is_zero = hn::RebindMask(d, hn::Eq(hn::PromoteTo(s, fields), hn::Zero(s)));
    return hn::IfThenElse(is_zero, hn::Set(d, choice.zero), hn::Set(d, choice.one));
  }
};

const std::byte* bytes(const void* elements) { return static_cast<const std::byte*>(elements); }
std::byte* bytes(void* elements) { return static_cast<std::byte*>(elements); }

void dequantize_lanes(const LevelScale& scale, const std::uint8_t* fields, std::size_t count, float* out) {
  each(Dequantize{scale}, bytes(out), count, bytes(fields));
}
void sign_fields_lanes(const float* in, std::size_t count, std::uint8_t* fields) {
  each(SignField(), bytes(fields), count, bytes(in));
}
void choose_lanes(const Choice& choice, const std::uint8_t* fields, std::size_t count, float* out) {
  each(Choose{choice}, bytes(out), count, bytes(fields));
}

// --- Sums and extremes ----------------------------------------------------------------------------------------------

constexpr std::size_t kSums = 16;  ///< partial sums of each sign; fixed by quantize.hpp

using F64 = hn::CappedTag<double, 8>;
using NarrowF32 = hn::Rebind<float, F64>;

struct SignPartials {
  double negative[kSums] = {}, positive[kSums] = {};
};

/// Adds `rows` x 16 elements, two vectors at a time: four sums hide the addition's latency. A zero changes no sum.
HWY_INLINE void add_by_sign(const float* in, std::size_t rows, SignPartials& sums) {
  const F64 d;
  const NarrowF32 narrow;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t group = 0; group < kSums; group += 2 * lanes) {
    double *const negative = sums.negative + group, *const positive = sums.positive + group;
    auto n0 = hn::LoadU(d, negative), n1 = hn::LoadU(d, negative + lanes);
    auto p0 = hn::LoadU(d, positive), p1 = hn::LoadU(d, positive + lanes);
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const from = in + row * kSums + group;
      const auto x0 = hn::PromoteTo(d, hn::LoadU(narrow, from)), x1 = hn::PromoteTo(d, hn::LoadU(narrow, from + lanes));
      const auto is_negative0 = hn::Lt(x0, hn::Zero(d)), is_negative1 = hn::Lt(x1, hn::Zero(d));
      n0 = hn::Add(n0, hn::IfThenElseZero(is_negative0, x0));
      n1 = hn::Add(n1, hn::IfThenElseZero(is_negative1, x1));
      p0 = hn::Add(p0, hn::IfThenZeroElse(is_negative0, x0));
      p1 = hn::Add(p1, hn::IfThenZeroElse(is_negative1, x1));
    }
    hn::StoreU(n0, d, negative);
    hn::StoreU(n1, d, negative + lanes);
    hn::StoreU(p0, d, positive);
    hn::StoreU(p1, d, positive + lanes);
  }
}

SignSums sign_sums_lanes(const float* in, std::size_t count) {
  SignPartials sums;
  const std::size_t rows = count / kSums, rest = count % kSums;
  add_by_sign(in, rows, sums);
  if (rest > 0) {
    float last[kSums] = {};
    std::memcpy(last, in + rows * kSums, rest * sizeof(float));
    add_by_sign(last, 1, sums);
  }
  for (std::size_t width = kSums / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) {
      sums.negative[j] += sums.negative[j + width];
      sums.positive[j] += sums.positive[j + width];
    }
  return {sums.negative[0], sums.positive[0]};
}

float peak_lanes(const float* in, std::size_t count) {
  const F32 d;
  const I32 s;
  const std::size_t lanes = hn::Lanes(d);
  const auto mask = hn::Set(s, 0x7fffffff);
  auto most = hn::Zero(s), also = most;
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    most = hn::Max(most, hn::And(hn::BitCast(s, hn::LoadU(d, in + i)), mask));
    also = hn::Max(also, hn::And(hn::BitCast(s, hn::LoadU(d, in + i + lanes)), mask));
  }
  for (; i < count; i += lanes) {
    const Room last(bytes(in + i), HWY_MIN(lanes, count - i) * sizeof(float));
    most = hn::Max(most, hn::And(hn::BitCast(s, load(d, last.bytes)), mask));
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(s, hn::Max(most, also))));
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(quantize_lanes);
HWY_EXPORT(dequantize_lanes);
HWY_EXPORT(sign_fields_lanes);
HWY_EXPORT(choose_lanes);
HWY_EXPORT(sign_sums_lanes);
HWY_EXPORT(peak_lanes);

void quantize(const LevelScale& scale, const float* in, std::size_t count, std::uint8_t* fields) {
  if (scale.unit > 0) return HWY_DYNAMIC_DISPATCH(quantize_lanes)(scale, in, count, fields);
  if (count > 0) std::memset(fields, scale.highest, count);
}
void dequantize(const LevelScale& scale, const std::uint8_t* fields, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(dequantize_lanes)(scale, fields, count, out);
}
void sign_fields(const float* in, std::size_t count, std::uint8_t* fields) {
  HWY_DYNAMIC_DISPATCH(sign_fields_lanes)(in, count, fields);
}
SignSums sign_sums(const float* in, std::size_t count) { return HWY_DYNAMIC_DISPATCH(sign_sums_lanes)(in, count); }
void choose(const Choice& choice, const std::uint8_t* fields, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(choose_lanes)(choice, fields, count, out);
}
float peak(const float* in, std::size_t count) { return HWY_DYNAMIC_DISPATCH(peak_lanes)(in, count); }

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
