// Binomial-tree pattern: a rank's partner at distance `mask`, a power of two. Positions count from the root.
#pragma once

#include <bit>
#include <cstdint>

namespace syncopate::collective::pattern {

/// Distance of the farthest pair: the largest power of two below `size` (size >= 2).
[[nodiscard]] constexpr std::uint32_t farthest(std::uint32_t size) { return std::bit_floor(size - 1); }
/// Position `at` is the upper (root-side) partner at this distance, and the lower partner exists.
[[nodiscard]] constexpr bool is_parent(std::uint32_t at, std::uint32_t size, std::uint32_t mask) {
  return at % (2 * mask) == 0 && at + mask < size;
}
[[nodiscard]] constexpr bool is_child(std::uint32_t at, std::uint32_t mask) { return at % (2 * mask) == mask; }

}  // namespace syncopate::collective::pattern
