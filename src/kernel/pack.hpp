// Packing fields of few bits, or of three values, and unpacking them with a check.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncopate::kernel {

// Fields are packed in whole blocks, padded with zeros after the last element. No alignment needed; what is read must
// not overlap what is written. Safe from any thread; nothing allocates.

inline constexpr std::size_t kBitBlock = 64, kTritBlock = 320;  ///< fields

/// Fields of `bits` bits (1 to 8), none above `most`.
struct BitFields {
  unsigned bits = 1;
  std::uint8_t most = 1;
};

/// Each block of 64 fields becomes `bits` words of 64 bits: word p holds bit p of every field.
void pack_bits(const BitFields& kind, const std::uint8_t* fields, std::size_t blocks, std::byte* into);
/// Whether no field is above the greatest.
[[nodiscard]] bool unpack_bits(const BitFields& kind, const std::byte* from, std::size_t blocks, std::uint8_t* fields);

/// Each block of 320 fields of 0, 1 or 2 becomes 64 bytes: byte j is the sum over s < 5 of 3^s fields[64 s + j].
void pack_trits(const std::uint8_t* fields, std::size_t blocks, std::byte* into);
/// Whether every byte is such a sum.
[[nodiscard]] bool unpack_trits(const std::byte* from, std::size_t blocks, std::uint8_t* fields);

}  // namespace syncopate::kernel
