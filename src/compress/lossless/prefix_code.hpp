// Prefix code: the shortest code of bytes for given counts, whose words fit one table lookup.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace syncopate::compress::lossless {

inline constexpr unsigned kSymbols = 256, kMostBits = 12;

using Counts = std::array<std::uint32_t, kSymbols>;
using Lengths = std::array<std::uint8_t, kSymbols>;  ///< bits of each symbol's word; 0: no word

/// The lengths, each from 1 to kMostBits, that minimise the total bits for these counts (length-limited Huffman).
/// Package-merge, Larmore and Hirschberg, JACM 1990. A single symbol gets one bit.
[[nodiscard]] Lengths lengths_of(const Counts& counts);

/// A code word; it is written lowest bit first.
struct Word {
  std::uint16_t bits = 0;
  std::uint16_t length = 0;
};
/// The canonical code: words ascend by length, then by symbol.
[[nodiscard]] std::array<Word, kSymbols> words_of(const Lengths& lengths);

/// The word at the beginning of the next kMostBits bits: its symbol and its length; length 0: no word.
struct Lookup {
  std::uint8_t symbol = 0;
  std::uint8_t length = 0;
};
using LookupTable = std::array<Lookup, 1U << kMostBits>;
/// Throws Corrupt if no prefix code has these lengths (Kraft's sum exceeds 1, or a length exceeds kMostBits).
void fill(LookupTable& table, const Lengths& lengths);

}  // namespace syncopate::compress::lossless
