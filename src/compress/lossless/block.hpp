// Block: some thousand 16-bit floating-point values as bytes, their exponents entropy-coded, and back bit for bit.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::compress::lossless {

inline constexpr std::size_t kBlock = 32768;  ///< values at most

/// Upper limit of write_block's bytes: one more than the values themselves.
[[nodiscard]] constexpr std::size_t most_block_bytes(std::size_t values) noexcept { return 1 + 2 * values; }

/// Writes a block; returns its bytes. The sign moves to the lowest bit, so that the upper byte is the exponent (of fp16
/// with three bits of the mantissa): it is written in a prefix code of its own for each block. The lower byte follows
/// as it is. A block that does not get shorter is written raw.
///
///   raw     1 byte 0 | values
///   coded   1 byte 1 | first symbol | last symbol | 4 bits for the length of each symbol's word, from first to last
///           | 4 x 2 bytes: bytes of each stream | lower bytes | 4 streams: words of each quarter of the values
std::size_t write_block(std::span<const std::uint16_t> values, base::Bytes into);

/// Reads so many values; returns the bytes behind the block. Throws Corrupt for bytes that write_block does not write.
[[nodiscard]] base::ConstBytes read_block(base::ConstBytes from, std::span<std::uint16_t> into);

}  // namespace syncopate::compress::lossless
