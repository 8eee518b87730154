// Round steps: which of several steps is kept, so that all servers keep the same without asking each other.
#pragma once

#include <bit>
#include <cstdint>

#include "server/consistency.hpp"

namespace syncopate::server {

/// Law: a server that cannot write every step keeps the rounder ones. If every server writes a snapshot within 2^k
/// intervals, all of them write every step that is a multiple of 2^k intervals, whatever their speeds. The newer one of
/// equally round steps is rounder.
[[nodiscard]] constexpr bool is_rounder(Clock one, Clock other) noexcept {
  const auto zeros = [](Clock step) { return std::countr_zero(static_cast<std::uint64_t>(step)); };
  return zeros(one) != zeros(other) ? zeros(one) > zeros(other) : one > other;
}

/// The roundest multiple of `every` that is more than `after` and at most `last`; 0: there is none.
[[nodiscard]] constexpr Clock roundest(Clock after, Clock last, Clock every) noexcept {
  const auto low = static_cast<std::uint64_t>(after / every), high = static_cast<std::uint64_t>(last / every);
  if (high <= low) return 0;
  const int differing = std::bit_width(low ^ high) - 1;  // below it the bits are free, and it is 1 in `high`
  return static_cast<Clock>(high >> differing << differing) * every;
}

}  // namespace syncopate::server
