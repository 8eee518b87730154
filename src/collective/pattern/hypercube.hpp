// Hypercube pattern: pairs whose numbers differ in one bit, for the largest power of two of ranks that fits.
// Ranks beyond it ("guests") hand their vector to a host and get the result back.
#pragma once

#include <bit>
#include <cstdint>

namespace syncopate::collective::pattern {

struct Hypercube {
  std::uint32_t size = 1;  ///< ranks in all

  [[nodiscard]] constexpr std::uint32_t corners() const { return std::bit_floor(size); }
  [[nodiscard]] constexpr bool is_guest(std::uint32_t rank) const { return rank >= corners(); }
  [[nodiscard]] constexpr std::uint32_t host_of(std::uint32_t guest) const { return guest - corners(); }
  [[nodiscard]] constexpr bool has_guest(std::uint32_t corner) const { return corner + corners() < size; }
  [[nodiscard]] constexpr std::uint32_t guest_of(std::uint32_t corner) const { return corner + corners(); }
};

/// The run of chunks [first, first + count) that a corner still works on.
struct Run {
  std::uint32_t first = 0, count = 0;
};

/// The half of `run` that `corner` keeps when it meets `corner ^ mask`; the partner keeps the other one.
[[nodiscard]] constexpr Run kept_half(Run run, std::uint32_t corner, std::uint32_t mask) {
  const std::uint32_t half = run.count / 2;
  return (corner & mask) != 0 ? Run{run.first + half, half} : Run{run.first, half};
}

}  // namespace syncopate::collective::pattern
