// Frame: headers as bytes, and the lengths that each kind allows.
#include "server/streams/frame.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::server::streams {

namespace {

struct Limits {
  std::size_t least, most;
};

Limits limits_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::settings:
      return {sizeof(std::uint32_t), sizeof(std::uint32_t)};
    case FrameKind::message:
      return {1, kMostHeadBytes + kMostBodyBytes};
    case FrameKind::heartbeat:
      return {0, 0};
    case FrameKind::close:
      return {0, kMostTextBytes};
  }
  throw Corrupt(fmt::format("sent a frame of the unknown kind {}", static_cast<int>(kind)));
}

}  // namespace

FrameHeader encode(const FrameShape& shape) noexcept {
  FrameHeader header{};
  base::put(header, 0, static_cast<std::uint32_t>(shape.bytes));
  header[kFrameKindAt] = static_cast<std::byte>(shape.kind);
  return header;
}

FrameShape decode(const FrameHeader& header) {
  const FrameShape shape{static_cast<FrameKind>(header[kFrameKindAt]), base::get<std::uint32_t>(header, 0)};
  const Limits limits = limits_of(shape.kind);
  if (shape.bytes < limits.least || shape.bytes > limits.most)
    throw Corrupt(fmt::format("sent a frame of kind {} with {} bytes; allowed: {} to {}", static_cast<int>(shape.kind),
                              shape.bytes, limits.least, limits.most));
  if (base::get<std::uint32_t>(header, kFrameKindAt) >> 8 != 0)
    throw Corrupt("sent a frame whose reserved bytes are not 0");
  return shape;
}

std::string readable(base::ConstBytes text) {
  std::string clean(reinterpret_cast<const char*>(text.data()), std::min(text.size(), kMostTextBytes));
  for (char& letter : clean)
    if (letter < ' ' || letter > '~') letter = '?';
  return clean;
}

}  // namespace syncopate::server::streams
