// Frame: the fixed header in front of every payload on a data connection.
#include "transport/tcp/frame.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "syncopate/error.hpp"

namespace syncopate::transport::tcp {

namespace {

constexpr std::uint32_t kMagic = 0x464e5953;  // "SYNF"
constexpr std::uint16_t kChecked = 1;
constexpr std::size_t kCovered = kFrameHeaderBytes - sizeof(std::uint64_t);

template <class... Args>
void check(bool fine, fmt::format_string<Args...> message, Args&&... args) {
  if (!fine) throw Corrupt(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace

std::uint64_t checksum_of(base::ConstBytes payload) noexcept { return XXH3_64bits(payload.data(), payload.size()); }

FrameBytes encode(const Frame& frame) noexcept {
  FrameBytes bytes{};
  base::put(bytes, 0, kMagic);
  base::put(bytes, 4, kFrameVersion);
  base::put(bytes, 6, static_cast<std::uint16_t>(frame.checked ? kChecked : 0));
  base::put(bytes, 8, frame.group);
  base::put(bytes, 16, frame.epoch);
  base::put(bytes, 24, frame.label.operation);
  base::put(bytes, 32, frame.label.signature);
  base::put(bytes, 40, frame.payload_bytes);
  base::put(bytes, 48, frame.checksum);
  base::put(bytes, kCovered, checksum_of(base::ConstBytes(bytes).first(kCovered)));
  return bytes;
}

Frame decode(const FrameBytes& bytes) {
  const auto magic = base::get<std::uint32_t>(bytes, 0);
  const auto version = base::get<std::uint16_t>(bytes, 4);
  const auto flags = base::get<std::uint16_t>(bytes, 6);
  check(magic == kMagic, "a frame begins with {:08x} instead of {:08x}", magic, kMagic);
  check(version == kFrameVersion, "a frame has version {} instead of {}", version, kFrameVersion);
  check(base::get<std::uint64_t>(bytes, kCovered) == checksum_of(base::ConstBytes(bytes).first(kCovered)),
        "a frame's header does not match its checksum");
  check((flags & ~kChecked) == 0 && base::get<std::uint32_t>(bytes, 20) == 0, "a frame has unknown flags {:04x}",
        flags);
  Frame frame;
  frame.group = base::get<std::uint64_t>(bytes, 8);
  frame.epoch = base::get<std::uint32_t>(bytes, 16);
  frame.label = {base::get<std::uint64_t>(bytes, 24), base::get<std::uint64_t>(bytes, 32)};
  frame.payload_bytes = base::get<std::uint64_t>(bytes, 40);
  frame.checked = (flags & kChecked) != 0;
  frame.checksum = base::get<std::uint64_t>(bytes, 48);
  check(frame.payload_bytes <= kMaxPayloadBytes, "a frame claims {} bytes, more than the limit of {}",
        frame.payload_bytes, kMaxPayloadBytes);
  return frame;
}

}  // namespace syncopate::transport::tcp
