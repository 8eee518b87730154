// ExtraRanks: the ranks that do not fit into a pattern; each has a partner among ranks 0 ... room - 1.
#pragma once

#include <cstdint>

namespace syncopate::collective::pattern {

struct ExtraRanks {
  std::uint32_t room = 1;  ///< ranks that take part in the pattern
  std::uint32_t size = 1;  ///< ranks in total

  [[nodiscard]] constexpr bool is_extra(std::uint32_t rank) const { return rank >= room; }
  [[nodiscard]] constexpr std::uint32_t partner_of(std::uint32_t extra) const { return extra % room; }
  /// The extra ranks of a partner are first_extra, first_extra + room, ... below size.
  [[nodiscard]] constexpr std::uint32_t first_extra(std::uint32_t partner) const { return partner + room; }
};

}  // namespace syncopate::collective::pattern
