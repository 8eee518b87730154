// Prefix code: the best code of bytes by their counts, with no word longer than a table lookup.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace syncopate::compress::lossless {

inline constexpr unsigned kSymbols = 256, kMostBits = 12;

using Counts = std::array<std::uint32_t, kSymbols>;
using Lengths = std::array<std::uint8_t, kSymbols>;  ///< bits of each symbol's word; 0: it has none

/// The lengths that make the fewest bits for these counts, of 1 to kMostBits each: a Huffman code with a limit.
/// Package-merge, Larmore and Hirschberg, JACM 1990. A single symbol gets one bit.
[[nodiscard]] Lengths lengths_of(const Counts& counts);

/// A word to be written lowest bit first.
struct Word {
  std::uint16_t bits = 0;
  std::uint16_t length = 0;
};
/// Canonical: words ascend by length, then by symbol.
[[nodiscard]] std::array<Word, kSymbols> words_of(const Lengths& lengths);

/// What the next kMostBits bits begin with: a symbol and the length of its word; length 0: no word.
struct Lookup {
  std::uint8_t symbol = 0;
  std::uint8_t length = 0;
};
using LookupTable = std::array<Lookup, 1U << kMostBits>;
/// Throws Corrupt for lengths that no prefix code has (Kraft's sum exceeds 1, or a length exceeds kMostBits).
void fill(LookupTable& table, const Lengths& lengths);

}  // namespace syncopate::compress::lossless
