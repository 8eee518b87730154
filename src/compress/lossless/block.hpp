// Block: encodes up to 32768 16-bit floating-point values with entropy-coded exponents, and decodes them bit-exactly.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "syncopate/dtype.hpp"

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

inline constexpr std::size_t kBlock = 32768;  ///< maximum number of values

/// Upper bound of write_block's bytes: one more than the values themselves.
[[nodiscard]] constexpr std::size_t most_block_bytes(std::size_t values) noexcept { return 1 + 2 * values; }

/// Writes a block and returns its bytes. The sign is rotated to the lowest bit, so the upper byte is the exponent (for
/// fp16, the exponent and three bits of the mantissa). The upper byte is written in a prefix code, one per block; the
/// lower byte is written unchanged. A block that would not become shorter is written raw.
///
///   raw     1 byte 0 | values
///   coded   1 byte 1 | first symbol | last symbol | 4 bits for the length of each symbol's word, from first to last
///           | 4 x 2 bytes: bytes of each stream | lower bytes | 4 streams: words of each quarter of the values
std::size_t write_block(std::span<const std::uint16_t> values, base::Bytes into);

/// Reads `into.size()` values and returns the bytes after the block. Throws Corrupt for bytes that write_block cannot
/// produce.
[[nodiscard]] base::ConstBytes read_block(base::ConstBytes from, std::span<std::uint16_t> into);

}  // namespace syncopate::compress::lossless
