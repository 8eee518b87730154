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

using Wide = hn::CappedTag<float, Draws::kStreams>;  ///< the streams are whole vectors
using Level = hn::RebindToSigned<Wide>;
using Draw = hn::RebindToUnsigned<Wide>;
constexpr std::size_t kStep = 2 * Draws::kStreams;  ///< elements of one turn of the loop: two or more vectors

/// 2^8 times 2^24 times kernel::dither of the elements from `first` on, which begin their streams.
HWY_INLINE hn::Vec<Draw> first_draws(std::uint64_t word, std::size_t first) {
  const Draw u;
  const auto low = hn::Set(u, static_cast<std::uint32_t>(word) + static_cast<std::uint32_t>(first));
  auto x = hn::Add(hn::Iota(u, 0), low);
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(u, 0x21f0aaad));
  x = hn::Xor(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(u, static_cast<std::uint32_t>(word >> 32)));
  x = hn::Mul(x, hn::Set(u, 0xd35a2d97));
  // Advancing keeps the changed highest bit: an odd multiple of 2^31 is 2^31.
  return hn::Xor(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(u, 0x80000000U));
}

/// x -> product x + sum: `turns` turns of a stream.
struct Turns {
  std::uint32_t product = 1, sum = 0;
  explicit Turns(std::size_t turns) {
    for (; turns > 0; --turns) {
      product *= Draws::kMultiplier;
      sum = Draws::next(sum);
    }
  }
  HWY_INLINE hn::Vec<Draw> operator()(hn::Vec<Draw> x) const {
    const Draw u;
    return hn::Add(hn::Mul(x, hn::Set(u, product)), hn::Set(u, sum));
  }
};

/// The draws of one step; taking them turns their streams to the next step.
class StepDraws {
 public:
  explicit StepDraws(std::uint64_t word) {
    const std::size_t lanes = hn::Lanes(Draw());
    for (std::size_t i = 0; i < Draws::kStreams; i += lanes) hn::StoreU(first_draws(word, i), Draw(), draws_ + i);
    const Turns once(1);
    for (std::size_t i = Draws::kStreams; i < kStep; i += lanes)
      hn::StoreU(once(hn::LoadU(Draw(), draws_ + i - Draws::kStreams)), Draw(), draws_ + i);
  }
  HWY_INLINE hn::Vec<Draw> take(std::size_t i) {
    const auto draws = hn::LoadU(Draw(), draws_ + i);
    hn::StoreU(turns_(draws), Draw(), draws_ + i);
    return draws;
  }

 private:
  const Turns turns_{kStep / Draws::kStreams};
  std::uint32_t draws_[kStep];
};

/// Stores level + highest of two vectors.
HWY_INLINE void store_fields(hn::Vec<Level> a, hn::Vec<Level> b, std::uint8_t highest, std::uint8_t* into) {
  const hn::Rebind<std::uint8_t, Level> field;
#if HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SCALAR
  const auto zero = hn::Set(Level(), highest);
  hn::StoreU(hn::DemoteTo(field, hn::Add(a, zero)), field, into);
  hn::StoreU(hn::DemoteTo(field, hn::Add(b, zero)), field, into + hn::Lanes(field));
#else
  const hn::Repartition<std::int16_t, Level> half;
  const hn::Rebind<std::uint8_t, decltype(half)> fields;
  const auto levels = hn::Add(hn::ReorderDemote2To(half, a, b), hn::Set(half, highest));
  auto narrow = hn::DemoteTo(fields, levels);
  if constexpr (hn::MaxLanes(field) > 4) {
    // Every block of 128 bits was narrowed by itself: four of a, four of b, the next four of a, ...
    const hn::Repartition<std::uint32_t, decltype(fields)> fours;
    alignas(16) static constexpr std::uint32_t kOrders[2][8] = {{0, 2, 1, 3}, {0, 2, 4, 6, 1, 3, 5, 7}};
    const auto order = hn::SetTableIndices(fours, kOrders[hn::MaxLanes(field) / 16]);
    narrow = hn::BitCast(fields, hn::TableLookupLanes(hn::BitCast(fours, narrow), order));
  }
  hn::StoreU(narrow, fields, into);
#endif
}

/// Levels of elements: in units, clipped, and rounded.
struct Levels {
  float per_unit, most;
  explicit Levels(const LevelScale& scale) {
    const float fine = scale.is_dithered ? 0x1p24F : 1;
    per_unit = 1 / scale.unit * fine;
    most = static_cast<float>(scale.highest) * fine;
  }
  HWY_INLINE hn::Vec<Wide> clipped(const float* in) const {
    const Wide d;
    const auto most_units = hn::Set(d, most);
    const auto units = hn::Mul(hn::LoadU(d, in), hn::Set(d, per_unit));
    return hn::Min(hn::Max(units, hn::Neg(most_units)), most_units);
  }
  HWY_INLINE hn::Vec<Level> nearest(const float* in) const {
    const Level s;
    const auto bits = hn::BitCast(s, hn::Add(clipped(in), hn::Set(Wide(), kWhole)));
    return hn::Sub(bits, hn::Set(s, std::bit_cast<std::int32_t>(kWhole)));
  }
  /// At most 127 * 2^24 + 2^24 - 1 before the shift, the largest number that fits.
  HWY_INLINE hn::Vec<Level> dithered(const float* in, hn::Vec<Draw> draws) const {
    const auto dither = hn::BitCast(Level(), hn::ShiftRight<8>(draws));
    return hn::ShiftRight<24>(hn::Add(hn::NearestInt(clipped(in)), dither));
  }
};

/// Rounds a vector of elements, the first of which has this place in its step.
struct Nearest {
  const Levels& levels;
  HWY_INLINE hn::Vec<Level> operator()(const float* in, std::size_t) const { return levels.nearest(in); }
};
struct Dithered {
  const Levels& levels;
  StepDraws& draws;
  HWY_INLINE hn::Vec<Level> operator()(const float* in, std::size_t place) const {
    return levels.dithered(in, draws.take(place));
  }
};

template <class Round>
HWY_INLINE void quantize_step(const Round& round, std::uint8_t highest, const float* in, std::uint8_t* fields) {
  const std::size_t lanes = hn::Lanes(Wide());
  for (std::size_t i = 0; i < kStep; i += 2 * lanes) {
    const auto a = round(in + i, i), b = round(in + i + lanes, i + lanes);
    store_fields(a, b, highest, fields + i);
  }
}

template <class Round>
HWY_INLINE void quantize_steps(const Round& round, std::uint8_t highest, const float* in, std::size_t count,
                               std::uint8_t* fields) {
  const std::size_t rest = count % kStep, whole = count - rest;
  for (std::size_t i = 0; i < whole; i += kStep) quantize_step(round, highest, in + i, fields + i);
  if (rest == 0) return;
  float last[kStep] = {};
  std::uint8_t quantized[kStep];
  std::memcpy(last, in + whole, rest * sizeof(float));
  quantize_step(round, highest, last, quantized);
  std::memcpy(fields + whole, quantized, rest);
}

void quantize_lanes(const LevelScale& scale, const float* in, std::size_t count, std::uint8_t* fields) {
  const Levels levels(scale);
  if (!scale.is_dithered) return quantize_steps(Nearest{levels}, scale.highest, in, count, fields);
  StepDraws draws(scale.word);
  quantize_steps(Dithered{levels, draws}, scale.highest, in, count, fields);
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

constexpr std::size_t kSquares = 32;  ///< partial sums; fixed by quantize.hpp

/// Adds `rows` x 32 squares, four vectors at a time: four sums hide the addition's latency.
HWY_INLINE void add_squares(const float* in, std::size_t rows, float factor, float* sums) {
  const hn::CappedTag<float, kSquares / 4> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, factor);
  const auto squares = [&](const float* from) HWY_ATTR {
    const auto x = hn::Mul(hn::LoadU(d, from), by);
    return hn::Mul(x, x);
  };
  for (std::size_t group = 0; group < kSquares; group += 4 * lanes) {
    float* const at = sums + group;
    auto s0 = hn::LoadU(d, at), s1 = hn::LoadU(d, at + lanes);
    auto s2 = hn::LoadU(d, at + 2 * lanes), s3 = hn::LoadU(d, at + 3 * lanes);
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const from = in + row * kSquares + group;
      s0 = hn::Add(s0, squares(from));
      s1 = hn::Add(s1, squares(from + lanes));
      s2 = hn::Add(s2, squares(from + 2 * lanes));
      s3 = hn::Add(s3, squares(from + 3 * lanes));
    }
    hn::StoreU(s0, d, at);
    hn::StoreU(s1, d, at + lanes);
    hn::StoreU(s2, d, at + 2 * lanes);
    hn::StoreU(s3, d, at + 3 * lanes);
  }
}

float scaled_squares_lanes(const float* in, std::size_t count, float factor) {
  float sums[kSquares] = {};
  const std::size_t rows = count / kSquares, rest = count % kSquares;
  add_squares(in, rows, factor, sums);
  if (rest > 0) {
    float last[kSquares] = {};
    std::memcpy(last, in + rows * kSquares, rest * sizeof(float));
    add_squares(last, 1, factor, sums);
  }
  for (std::size_t width = kSquares / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  return sums[0];
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
HWY_EXPORT(scaled_squares_lanes);

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
float scaled_squares(const float* in, std::size_t count, float factor) {
  return HWY_DYNAMIC_DISPATCH(scaled_squares_lanes)(in, count, factor);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
