// The sum of bits in four vectors of partial sums, enough to be limited by memory only.
#include "kernel/sum.hpp"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/sum.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

std::uint32_t bit_sum_lanes(const float* in, std::size_t count) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const hn::Rebind<float, decltype(d)> df;
  const auto words = [&](const float* from) { return hn::BitCast(d, hn::LoadU(df, from)); };
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::Add(s0, words(in + i));
    s1 = hn::Add(s1, words(in + i + lanes));
    s2 = hn::Add(s2, words(in + i + 2 * lanes));
    s3 = hn::Add(s3, words(in + i + 3 * lanes));
  }
  std::uint32_t sums[16] = {};
  hn::StoreU(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), d, sums);
  std::uint32_t total = 0;
  for (const std::uint32_t sum : sums) total += sum;
  for (; i < count; ++i) total += std::bit_cast<std::uint32_t>(in[i]);
  return total;
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(bit_sum_lanes);

std::uint32_t bit_sum(std::span<const float> elements) {
  return HWY_DYNAMIC_DISPATCH(bit_sum_lanes)(elements.data(), elements.size());
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
