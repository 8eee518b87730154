// Quantising: groups of elements as small whole numbers of a unit, and back.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace syncopate::kernel {

// All results are the same bits on every instruction set. No alignment needed; what is read must not overlap what is
// written. Safe from any thread; nothing allocates.

/// Random bits of element `index` of a group. Elements with equal index mod 16 share a stream, a linear congruential
/// generator (multiplier: Steele and Vigna, "Computationally easy, spectrally good multipliers", 2022), so 16 or more
/// lanes advance by one product and one sum. Each stream begins with two rounds of multiply and xor-shift (Wellons'
/// lowbias32) of its number, with half of the group's word before the first round and half before the second, so that
/// two words give no streams that are shifted copies of each other. This is the definition; the lanes compute the same.
struct Draws {
  static constexpr std::uint32_t kStreams = 16, kMultiplier = 0x93d765dd, kIncrement = 0x9e3779b9;
  [[nodiscard]] static constexpr std::uint32_t next(std::uint32_t x) noexcept { return x * kMultiplier + kIncrement; }
};
[[nodiscard]] constexpr std::uint32_t drawn(std::uint64_t word, std::uint32_t index) noexcept {
  std::uint32_t x = index % Draws::kStreams + static_cast<std::uint32_t>(word);
  x = (x ^ (x >> 16)) * 0x21f0aaad;
  x = (x ^ (x >> 15) ^ static_cast<std::uint32_t>(word >> 32)) * 0xd35a2d97;
  x ^= x >> 15;
  for (std::uint32_t turn = index / Draws::kStreams; turn > 0; --turn) x = Draws::next(x);
  return x;
}

/// Uniform in [0, 1): a multiple of 2^-24.
[[nodiscard]] constexpr float dither(std::uint64_t word, std::uint32_t index) noexcept {
  return static_cast<float>((drawn(word, index) >> 8) ^ 0x800000U) * 0x1p-24F;
}

/// Maps a group's elements to levels: whole numbers in [-highest, highest], in multiples of `unit`.
struct LevelScale {
  float unit = 0;            ///< NaN, 0, or at least 2^-100
  std::uint8_t highest = 1;  ///< at most 127
  bool is_dithered = false;  ///< stochastic rounding with `word`
  std::uint64_t word = 0;    ///< random bits of the group
};

/// The largest unit of which `highest` are finite in f32.
[[nodiscard]] constexpr float largest_unit(unsigned highest) noexcept {
  constexpr double most = std::numeric_limits<float>::max();
  const auto unit = static_cast<float>(most / highest);
  return double{unit} * highest <= most ? unit : std::bit_cast<float>(std::bit_cast<std::uint32_t>(unit) - 1);
}

/// fields[i] = level + highest, where x' = fl(min(max(fl(x[i] fl(1 / unit)), -highest), highest)) and
///   level = nearest even whole number to x'; with dither: floor(round(x' 2^24) 2^-24 + dither(word, i)), exactly.
/// With dither a whole x' is its own level for every draw, so no level is above `highest`, and the expected level is x'
/// up to 2^-25. If the unit is NaN or 0 every level is 0; otherwise all elements are finite.
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
/// The values of a one-bit field.
struct Choice {
  float zero, one;
};
/// out[i] = fields[i] == 0 ? choice.zero : choice.one, bit for bit.
void choose(const Choice& choice, const std::uint8_t* fields, std::size_t count, float* out);

/// The greatest |x|, by the order of magnitudes (select.hpp): NaN if an element is NaN. 0 for no elements.
[[nodiscard]] float peak(const float* in, std::size_t count);
/// Sum of fl(x_i factor)^2 in f32: the square of element i is added to partial sum i mod 32, in order of i; then the 32
/// are added pairwise (j and j + 16, ... j + 1). With 1 / peak as factor nothing overflows in groups of elements.
[[nodiscard]] float scaled_squares(const float* in, std::size_t count, float factor);

}  // namespace syncopate::kernel
