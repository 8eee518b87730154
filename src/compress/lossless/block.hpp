// Block: encodes up to 32768 16-bit floating-point values with entropy-coded exponents, and decodes them bit-exactly.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::compress::lossless {

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
