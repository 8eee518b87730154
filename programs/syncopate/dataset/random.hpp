// Random: random numbers that depend on nothing but (seed, set, image) and how many were drawn before.
#pragma once

#include <array>
#include <cstdint>

namespace syncopate::tools::dataset {

/// Philox4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a block cipher
/// on a counter. Every image has a counter range of its own, so images can be drawn in any order, by any thread.
class Random final {
 public:
  Random(std::uint64_t seed, std::uint32_t set, std::uint64_t image) noexcept
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, set, static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(image >> 32)} {}

  std::uint32_t word() noexcept;
  double unit() noexcept { return word() * 0x1p-32; }  ///< [0, 1), exact
  double between(double low, double high) noexcept { return low + (high - low) * unit(); }
  int below(int count) noexcept {
    return static_cast<int>((static_cast<std::uint64_t>(word()) * static_cast<std::uint64_t>(count)) >> 32);
  }
  /// About normal with variance 1: the sum of four uniforms. No logarithm, whose last bit differs between machines.
  double bell() noexcept;

 private:
  void refill() noexcept;

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int left_ = 0;
};

}  // namespace syncopate::tools::dataset
