// Quantising: groups of elements as small whole numbers of a unit, and back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncopate::kernel {

// All results are the same bits on every instruction set. No alignment needed; what is read must not overlap what is
// written. Safe from any thread; nothing allocates.

/// Random bits of element `index` of a group: two rounds of multiply and xor-shift (Wellons' lowbias32) of the counter,
/// with half of the group's word before the first round and half before the second, so that two words give no streams
/// that are shifted copies of each other. This is the definition; the lanes compute the same.
[[nodiscard]] constexpr std::uint32_t drawn(std::uint64_t word, std::uint32_t index) noexcept {
  std::uint32_t x = index + static_cast<std::uint32_t>(word);
  x = (x ^ (x >> 16)) * 0x21f0aaad;
  x = (x ^ (x >> 15) ^ static_cast<std::uint32_t>(word >> 32)) * 0xd35a2d97;
  return x ^ (x >> 15);
}

/// Uniform in (-1/2, 1/2), without either end: an odd multiple of 2^-25, 2^24 values, symmetric about zero.
[[nodiscard]] constexpr float dither(std::uint64_t word, std::uint32_t index) noexcept {
  const std::int32_t odd = (static_cast<std::int32_t>(drawn(word, index)) >> 7) | 1;
  return static_cast<float>(odd) * 0x1p-25F;
}

/// How a group's elements become levels: whole numbers in [-highest, highest], each one worth `unit`.
struct LevelScale {
  float unit = 0;            ///< NaN, 0, or at least 2^-126
  std::uint8_t highest = 1;  ///< at most 127
  bool is_dithered = false;  ///< rounding is stochastic: by `word`
  std::uint64_t word = 0;    ///< random bits of the group
};

/// fields[i] = level + highest, where
///   level = nearest even whole number to fl(min(max(fl(x[i] fl(1 / unit)), -highest), highest) + d),
/// d = 0 or dither(word, i). With dither the expected level of what is not clipped is x / unit. If the unit is NaN or 0
/// every level is 0; otherwise all elements are finite.
void quantize(const LevelScale& scale, const float* in, std::size_t count, std::uint8_t* fields);
/// out[i] = fl((fields[i] - highest) unit); the quiet NaN if the unit is NaN.
void dequantize(const LevelScale& scale, const std::uint8_t* fields, std::size_t count, float* out);

/// fields[i] = the sign bit of in[i].
void sign_fields(const float* in, std::size_t count, std::uint8_t* fields);
/// Sums of the elements with and without a sign bit, in f64: element i is added to partial sum i mod 16, in order of i;
/// then the 16 are added pairwise (j and j + 8, ... j + 1). NaN or infinite if an element is.
struct SignSums {
  double negative = 0, positive = 0;
};
[[nodiscard]] SignSums sign_sums(const float* in, std::size_t count);
/// What a field of one bit stands for.
struct Choice {
  float zero, one;
};
/// out[i] = fields[i] == 0 ? choice.zero : choice.one, bit for bit.
void choose(const Choice& choice, const std::uint8_t* fields, std::size_t count, float* out);

/// The greatest |x|, by the order of magnitudes (select.hpp): NaN if an element is NaN. 0 for no elements.
[[nodiscard]] float peak(const float* in, std::size_t count);

}  // namespace syncopate::kernel
