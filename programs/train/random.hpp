// Counter-based random numbers: every draw is a pure function of a key and a counter, equal on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace syncopate::train {

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection of 64 bits; every input bit affects every output bit.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The stream of draws of a key such as (seed, epoch, sample).
class Random final {
 public:
  constexpr Random(std::initializer_list<std::uint64_t> key) noexcept {
    for (const std::uint64_t part : key) key_ = mix(key_ ^ mix(part));
  }
  constexpr std::uint64_t bits() noexcept { return mix(key_ + 0x9e3779b97f4a7c15u * ++counter_); }
  /// An integer in [0, bound): the upper half of a 128-bit product. Its bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits()) * bound) >> 64);
  }
  /// A number in [-half_width, half_width).
  constexpr float symmetric(float half_width) noexcept {
    const float unit = static_cast<float>(bits() >> 40) * 0x1p-24f;
    return (2 * unit - 1) * half_width;
  }

 private:
  std::uint64_t key_ = 0;
  std::uint64_t counter_ = 0;
};

}  // namespace syncopate::train
