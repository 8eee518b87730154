// Frame: the fixed header before every payload on a data connection.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::tcp {

/// For a chunk of 1 KiB every 10 bytes of header are 1 % of the time.
inline constexpr std::size_t kFrameHeaderBytes = 40;
inline constexpr std::uint8_t kFrameVersion = 2;
inline constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 40;

// Layout, little-endian:
//   0 u16 magic "SF"     2 u8 version   3 u8 flags (bit 0: payload checksum is valid; others 0)
//   4 u32 group, its lower half
//   8 u64 operation     16 u64 signature
//  24 u48 payload bytes                30 u16 epoch
//  32 u32 of the payload, or 0         36 u32 of bytes 0..35: the lower halves of their XXH3-64
using FrameBytes = std::array<std::byte, kFrameHeaderBytes>;

struct Frame {
  std::uint32_t group = 0;
  std::uint16_t epoch = 0;
  Label label;
  std::uint64_t payload_bytes = 0;
  bool checked = false;  ///< the payload's checksum is valid
  std::uint32_t checksum = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

[[nodiscard]] std::uint32_t checksum_of(base::ConstBytes payload) noexcept;
[[nodiscard]] FrameBytes encode(const Frame& frame) noexcept;
/// Throws Corrupt naming the invalid field: magic, version, header checksum, flags, length.
[[nodiscard]] Frame decode(const FrameBytes& bytes);

}  // namespace syncopate::transport::tcp
