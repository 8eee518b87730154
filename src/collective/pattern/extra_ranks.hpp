// ExtraRanks: ranks beyond those that a pattern has room for ("hosts" 0 ... room - 1); each belongs to one host.
#pragma once

#include <cstdint>

namespace syncopate::collective::pattern {

struct ExtraRanks {
  std::uint32_t room = 1;  ///< ranks that take part in the pattern
  std::uint32_t size = 1;  ///< ranks in all

  [[nodiscard]] constexpr bool is_extra(std::uint32_t rank) const { return rank >= room; }
  [[nodiscard]] constexpr std::uint32_t host_of(std::uint32_t guest) const { return guest % room; }
  /// The extra_ranks of a host are first_guest, first_guest + room, ... below size.
  [[nodiscard]] constexpr std::uint32_t first_guest(std::uint32_t host) const { return host + room; }
};

}  // namespace syncopate::collective::pattern
