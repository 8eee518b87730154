// Shared by the tests of quantising codecs: lists of codecs, and elements.
#pragma once

#include <cmath>

#include "base/random.hpp"
#include "compress/coders.hpp"
#include "kernel/quantize.hpp"

namespace syncopate::compress::test {

inline const std::vector<std::string> kQuantising{"qsgd:2", "qsgd:4", "qsgd:8", "terngrad", "int8", "onebit"};
inline const std::vector<std::string> kSound{"int8", "onebit"};  ///< those with feedback

/// The group's word for which element `index` draws `bits`: the inverse of kernel::drawn.
constexpr std::uint64_t word_that_draws(std::uint32_t bits, std::uint32_t index) {
  const auto inverse = [](std::uint32_t odd) {
    std::uint32_t x = odd;
    for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
    return x;
  };
  const auto unshifted = [](std::uint32_t y, int shift) {
    std::uint32_t x = y;
    for (int i = 0; i < 32; ++i) x = y ^ (x >> shift);
    return x;
  };
  std::uint32_t start = bits;
  for (std::uint32_t turn = index / kernel::Draws::kStreams; turn > 0; --turn)
    start = (start - kernel::Draws::kIncrement) * inverse(kernel::Draws::kMultiplier);
  const std::uint32_t second = unshifted(start, 15) * inverse(0xd35a2d97);
  return unshifted(unshifted(second, 15) * inverse(0x21f0aaad), 16) -
         index % kernel::Draws::kStreams;  // its upper half is zero
}

/// The greatest draws, the least ones, and some between.
inline constexpr std::uint32_t kExtremeDraws[] = {0x7fffffff, 0x7fffff00, 0x7ffffeff, 0x80000000, 0x800000ff, 0, 1};

/// A normally distributed number with mean 0 and variance 1.
inline float normal(std::uint64_t stream, std::uint64_t i) {
  const base::CounterRandom random{stream};
  return static_cast<float>(std::sqrt(-2 * std::log(1 - random.uniform(2 * i))) *
                            std::cos(6.283185307179586 * random.uniform(2 * i + 1)));
}

}  // namespace syncopate::compress::test
