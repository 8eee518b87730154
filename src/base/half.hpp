// Half precision in integer arithmetic: one f16 or bf16 word to f32 and back.
#pragma once

#include <bit>
#include <cstdint>

namespace syncopate::base {

// f16  = sign 1 | exponent 5, bias 15  | fraction 10     (IEEE 754 binary16)
// bf16 = sign 1 | exponent 8, bias 127 | fraction 7      (the upper half of an f32)
// Narrowing rounds to nearest, ties to even, and overflows to infinity. A NaN stays a NaN: it becomes quiet and keeps
// its sign and the upper bits of its payload, in both directions, as in the processors' own conversions.

[[nodiscard]] constexpr float from_f16(std::uint16_t word) noexcept {
  const std::uint32_t sign = (word & 0x8000u) << 16, exponent = (word >> 10) & 31u, fraction = word & 0x3ffu;
  if (exponent == 31) {
    const std::uint32_t quiet = fraction != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | fraction << 13);
  }
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

[[nodiscard]] constexpr std::uint16_t to_f16(float value) noexcept {
  // Drops the lowest `shift` (1..24) bits of `bits`, rounding to nearest, ties to even.
  const auto rounded = [](std::uint32_t bits, std::uint32_t shift) {
    const std::uint32_t kept = bits >> shift, rest = bits & ((1u << shift) - 1), half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u);
  };
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu, exponent = magnitude >> 23;
  std::uint32_t word = 0;  // up to 2^-25 the nearest f16 is zero
  if (magnitude > 0x7f800000u)
    word = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  else if (magnitude >= 0x47800000u)  // 2^16 and above
    word = 0x7c00u;
  else if (exponent >= 113)  // normal: a carry out of the fraction raises the exponent, up to infinity
    word = rounded(magnitude - (112u << 23), 13);
  else if (exponent >= 102)  // subnormal: significand * 2^(exponent-150) in units of 2^-24
    word = rounded((magnitude & 0x7fffffu) | 0x800000u, 126 - exponent);
  return static_cast<std::uint16_t>(sign | word);
}

[[nodiscard]] constexpr float from_bf16(std::uint16_t word) noexcept {
  const std::uint32_t quiet = (word & 0x7fffu) > 0x7f80u ? 0x00400000u : 0u;
  return std::bit_cast<float>(static_cast<std::uint32_t>(word) << 16 | quiet);
}

[[nodiscard]] constexpr std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  const std::uint32_t kept = bits >> 16, rest = bits & 0xffffu;
  const bool up = rest > 0x8000u || (rest == 0x8000u && (kept & 1u) != 0);
  return static_cast<std::uint16_t>(kept + (up ? 1u : 0u));
}

}  // namespace syncopate::base
