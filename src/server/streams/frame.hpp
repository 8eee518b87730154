// Frame: the unit of a stream's bytes: a header of eight bytes, then a message, settings, a text, or nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "server/streams/stream.hpp"

namespace syncopate::server::streams {

/// `settings`: the first frame of each end, and no other: a u32 of milliseconds, the end's silence. `close`: the last
/// one: the text of an error, or nothing.
enum class FrameKind : std::uint8_t { settings = 1, message = 2, heartbeat = 3, close = 4 };

// Layout, little-endian: 0 u32 bytes that follow the header, 4 u8 kind, 5 three bytes 0.
inline constexpr std::size_t kFrameHeaderBytes = 8, kFrameKindAt = 4;
using FrameHeader = std::array<std::byte, kFrameHeaderBytes>;

/// Limit of a close frame's text.
inline constexpr std::size_t kMostTextBytes = 1000;

struct FrameShape {
  FrameKind kind = FrameKind::heartbeat;
  std::size_t bytes = 0;
};
[[nodiscard]] FrameHeader encode(const FrameShape& shape) noexcept;
/// Throws Corrupt for an unknown kind, and for a length that its kind does not allow.
[[nodiscard]] FrameShape decode(const FrameHeader& header);

/// Text from the other end, made safe for an error message: printable, at most kMostTextBytes.
[[nodiscard]] std::string readable(base::ConstBytes text);

}  // namespace syncopate::server::streams
