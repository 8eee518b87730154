// Hypercube pattern: pairs whose numbers differ in one bit, for the largest power of two of ranks that fits.
#pragma once

#include <bit>
#include <cstdint>

#include "collective/pattern/extra_ranks.hpp"
#include "collective/pattern/run.hpp"

namespace syncopate::collective::pattern {

/// Corners are the ranks below the largest power of two; the others are extra ranks.
struct Hypercube {
  std::uint32_t size = 1;  ///< ranks in total

  [[nodiscard]] constexpr std::uint32_t corners() const { return std::bit_floor(size); }
  [[nodiscard]] constexpr ExtraRanks extra_ranks() const { return {corners(), size}; }
};

/// The half of `run` that `corner` keeps in its exchange with `corner ^ mask`; the partner keeps the other one.
[[nodiscard]] constexpr Run kept_half(Run run, std::uint32_t corner, std::uint32_t mask) {
  const std::uint32_t half = run.count / 2;
  return (corner & mask) != 0 ? Run{run.first + half, half} : Run{run.first, half};
}

}  // namespace syncopate::collective::pattern
