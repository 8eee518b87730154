// The squared norm in 32 partial sums, and scaling, on the processor's widest vectors.
#include "kernel/norm.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/require.hpp"
#include "kernel/cast.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/norm.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

constexpr std::size_t kSums = 32;     ///< fixed by norm.hpp: 4 vectors of 8, 8 of 4, ...
constexpr std::size_t kBlock = 1024;  ///< elements; read once per group of sums, so it must stay in the first cache
static_assert(kBlock % kSums == 0);

using F64 = hn::CappedTag<double, 8>;
using NarrowF32 = hn::Rebind<float, F64>;

/// Converts the elements of each type to f64.
struct F64Elements {
  static constexpr std::size_t kSize = 8;
  static HWY_INLINE hn::Vec<F64> widened(const std::byte* in) { return load(F64(), in); }
};
struct F32Elements {
  static constexpr std::size_t kSize = 4;
  static HWY_INLINE hn::Vec<F64> widened(const std::byte* in) { return hn::PromoteTo(F64(), load(NarrowF32(), in)); }
};

/// Adds the squares of `rows` x 32 elements to 32 partial sums. Four vectors of sums at a time are enough to hide the
/// addition's latency; with shorter vectors the rows are read once per four vectors.
template <class Elements>
HWY_INLINE void add_squares(const std::byte* in, std::size_t rows, double* sums) {
  const F64 d;
  const std::size_t lanes = hn::Lanes(d), row_bytes = kSums * Elements::kSize;
  const std::size_t vector_bytes = lanes * Elements::kSize;
  for (std::size_t group = 0; group < kSums; group += 4 * lanes) {
    double* const at = sums + group;
    auto s0 = hn::LoadU(d, at), s1 = hn::LoadU(d, at + lanes);
    auto s2 = hn::LoadU(d, at + 2 * lanes), s3 = hn::LoadU(d, at + 3 * lanes);
    const std::byte* from = in + group * Elements::kSize;
    for (std::size_t row = 0; row < rows; ++row, from += row_bytes) {
      const auto x0 = Elements::widened(from), x1 = Elements::widened(from + vector_bytes);
      const auto x2 = Elements::widened(from + 2 * vector_bytes), x3 = Elements::widened(from + 3 * vector_bytes);
      s0 = hn::Add(s0, hn::Mul(x0, x0));
      s1 = hn::Add(s1, hn::Mul(x1, x1));
      s2 = hn::Add(s2, hn::Mul(x2, x2));
      s3 = hn::Add(s3, hn::Mul(x3, x3));
    }
    hn::StoreU(s0, d, at);
    hn::StoreU(s1, d, at + lanes);
    hn::StoreU(s2, d, at + 2 * lanes);
    hn::StoreU(s3, d, at + 3 * lanes);
  }
}

/// `count` is any number of elements; a last row that is not full is completed with zeros, which add nothing.
template <class Elements>
void add_block(const std::byte* in, std::size_t count, double* sums) {
  const std::size_t rows = count / kSums, rest = count % kSums;
  add_squares<Elements>(in, rows, sums);
  if (rest == 0) return;
  std::byte room[kSums * Elements::kSize] = {};
  std::memcpy(room, in + rows * kSums * Elements::kSize, rest * Elements::kSize);
  add_squares<Elements>(room, 1, sums);
}

void add_squares_of(DType dtype, const std::byte* in, std::size_t count, double* sums) {
  if (dtype == DType::f64) return add_block<F64Elements>(in, count, sums);
  add_block<F32Elements>(in, count, sums);
}

struct Product {
  double factor;
  template <class V>
  HWY_INLINE V operator()(V v) const {
    const hn::DFromV<V> d;
    return hn::Mul(v, hn::Set(d, static_cast<hn::TFromD<decltype(d)>>(factor)));
  }
};

void scale_lanes(DType dtype, std::byte* into, std::size_t count, double factor) {
  Floating<Product>{dtype, {factor}}(into, count, static_cast<const std::byte*>(into));
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(add_squares_of);
HWY_EXPORT(scale_lanes);

namespace {
void require_floating(const char* what, DType dtype) {
  base::require(!is_integer(dtype), "{} of type {}: allowed are f32, f64, f16 and bf16", what, name_of(dtype));
}
}  // namespace

double squared_norm(DType dtype, const std::byte* in, std::size_t count) {
  require_floating("the norm", dtype);
  constexpr std::size_t sums_count = HWY_NAMESPACE::kSums, block = HWY_NAMESPACE::kBlock;
  double sums[sums_count] = {};
  std::byte room[block * sizeof(float)];
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t n = count - begin < block ? count - begin : block;
    const std::byte* elements = in + begin * size_of(dtype);
    if (half) cast({dtype, DType::f32}, elements, room, n);
    HWY_DYNAMIC_DISPATCH(add_squares_of)(half ? DType::f32 : dtype, half ? room : elements, n, sums);
  }
  for (std::size_t width = sums_count / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  return std::isnan(sums[0]) ? std::numeric_limits<double>::quiet_NaN() : sums[0];
}

void scale(DType dtype, std::byte* into, std::size_t count, double factor) {
  require_floating("scaling", dtype);
  HWY_DYNAMIC_DISPATCH(scale_lanes)(dtype, into, count, factor);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
