// Random: numbers that are a pure function of a key and a counter, so that every rank can recompute any of them.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace syncopate::base {

/// The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that mixes all bits.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A stream of numbers for each list of keys: gradient, step, rank, purpose.
class CounterRandom final {
 public:
  CounterRandom(std::initializer_list<std::uint64_t> keys) noexcept {
    for (const std::uint64_t key : keys) key_ = mixed((key_ + kGolden) ^ mixed(key + kGolden));
  }
  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t counter) const noexcept {
    return mixed(key_ + (counter + 1) * kGolden);
  }
  /// Uniform in [0, 1), with 53 bits.
  [[nodiscard]] constexpr double uniform(std::uint64_t counter) const noexcept {
    return static_cast<double>(bits(counter) >> 11) * 0x1.0p-53;
  }
  /// Uniform in [0, limit), up to 2^-32 of it; limit below 2^32.
  [[nodiscard]] constexpr std::uint32_t below(std::uint32_t limit, std::uint64_t counter) const noexcept {
    return static_cast<std::uint32_t>(((bits(counter) >> 32) * limit) >> 32);
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  std::uint64_t key_ = 0;
};

}  // namespace syncopate::base
