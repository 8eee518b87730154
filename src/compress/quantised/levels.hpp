// Levels: the quantiser of codecs that send whole numbers of a unit, one unit for each group.
#pragma once

#include "compress/quantised/quantiser.hpp"

namespace syncopate::compress::quantised {

struct LevelCoding {
  std::size_t group = kGroup;
  std::uint8_t highest = 1;   ///< levels are whole numbers in [-highest, highest]; at most 127
  unsigned bits = 0;          ///< of a level: 2 * highest fits; 0: five levels of highest 1 in a byte
  bool is_stochastic = true;  ///< rounding: its expectation is the element; otherwise to nearest
  /// What a level is worth. Not finite if and only if an element is not.
  double (*unit)(std::span<const float> group, unsigned highest) = nullptr;
};

/// A group is its unit (f32) and its packed levels (kernel/pack.hpp). A unit below 2^-100 counts as 0, and with it the
/// group: what feedback keeps of it grows until it counts. The unit is at most kernel::largest_unit, so that every
/// level is finite.
[[nodiscard]] std::unique_ptr<Quantiser> level_quantiser(const LevelCoding& coding);

}  // namespace syncopate::compress::quantised
