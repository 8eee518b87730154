// Level quantiser: encodes each element as an integer multiple of its group's unit.
#pragma once

#include "compress/quantised/quantiser.hpp"

namespace syncopate::compress::quantised {

struct LevelCoding {
  std::size_t group = kGroup;
  std::uint8_t highest = 1;   ///< levels are integers in [-highest, highest]; at most 127
  unsigned bits = 0;          ///< per level, enough for 2 * highest; 0: five levels in a byte (highest is 1)
  bool is_stochastic = true;  ///< stochastic rounding (unbiased); otherwise to nearest
  /// The value of one level. It is not finite if and only if an element is not finite.
  double (*unit)(std::span<const float> group, unsigned highest) = nullptr;
};

/// A group is encoded as its unit (f32) and its packed levels (kernel/pack.hpp). If the unit is below 2^-100, the group
/// is encoded as zeros; with feedback, its residual grows until the unit is large enough. The unit is at most
/// kernel::largest_unit, so every level is finite.
[[nodiscard]] std::unique_ptr<Quantiser> level_quantiser(const LevelCoding& coding);

}  // namespace syncopate::compress::quantised
