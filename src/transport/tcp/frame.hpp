// Frame: the fixed header in front of every payload on a data connection.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::tcp {

inline constexpr std::size_t kFrameHeaderBytes = 64;
inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 40;

// Layout, little-endian:
//   0 u32 magic "SYNF"   4 u16 version      6 u16 flags (bit 0: payload checksum is valid; others 0)
//   8 u64 group         16 u32 epoch       20 u32 zero
//  24 u64 operation     32 u64 signature   40 u64 payload bytes
//  48 u64 XXH3-64 of the payload, or 0     56 u64 XXH3-64 of bytes 0..55
using FrameBytes = std::array<std::byte, kFrameHeaderBytes>;

struct Frame {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  Label label;
  std::uint64_t payload_bytes = 0;
  bool checked = false;  ///< the payload's checksum is given
  std::uint64_t checksum = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

[[nodiscard]] std::uint64_t checksum_of(base::ConstBytes payload) noexcept;
[[nodiscard]] FrameBytes encode(const Frame& frame) noexcept;
/// Throws Corrupt saying which field cannot be: magic, version, header checksum, flags, length.
[[nodiscard]] Frame decode(const FrameBytes& bytes);

}  // namespace syncopate::transport::tcp
