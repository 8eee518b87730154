// Frame: the fixed header before every payload on a data connection.
#include "transport/tcp/frame.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "syncopate/error.hpp"

namespace syncopate::transport::tcp {

namespace {

constexpr std::uint16_t kMagic = 0x4653;  // "SF"
constexpr std::uint8_t kChecked = 1;
constexpr std::size_t kCovered = kFrameHeaderBytes - sizeof(std::uint32_t);
constexpr int kLengthBits = 48;

template <class... Args>
void check(bool fine, fmt::format_string<Args...> message, Args&&... args) {
  if (!fine) throw Corrupt(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace

std::uint32_t checksum_of(base::ConstBytes payload) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits(payload.data(), payload.size()));
}

FrameBytes encode(const Frame& frame) noexcept {
  FrameBytes bytes{};
  base::put(bytes, 0, kMagic);
  base::put(bytes, 2, kFrameVersion);
  base::put(bytes, 3, static_cast<std::uint8_t>(frame.checked ? kChecked : 0));
  base::put(bytes, 4, frame.group);
  base::put(bytes, 8, frame.label.operation);
  base::put(bytes, 16, frame.label.signature);
  base::put(bytes, 24, std::uint64_t{frame.epoch} << kLengthBits | frame.payload_bytes);
  base::put(bytes, 32, frame.checksum);
  base::put(bytes, kCovered, checksum_of(base::ConstBytes(bytes).first(kCovered)));
  return bytes;
}

Frame decode(const FrameBytes& bytes) {
  const auto magic = base::get<std::uint16_t>(bytes, 0);
  const auto version = base::get<std::uint8_t>(bytes, 2), flags = base::get<std::uint8_t>(bytes, 3);
  check(magic == kMagic, "a frame begins with {:04x} instead of {:04x}", magic, kMagic);
  check(version == kFrameVersion, "a frame has version {} instead of {}", version, kFrameVersion);
  check(base::get<std::uint32_t>(bytes, kCovered) == checksum_of(base::ConstBytes(bytes).first(kCovered)),
        "a frame's header does not match its checksum");
  check((flags & ~kChecked) == 0, "a frame has unknown flags {:02x}", flags);
  const auto epoch_and_length = base::get<std::uint64_t>(bytes, 24);
  const Frame frame{.group = base::get<std::uint32_t>(bytes, 4),
                    .epoch = static_cast<std::uint16_t>(epoch_and_length >> kLengthBits),
                    .label = {base::get<std::uint64_t>(bytes, 8), base::get<std::uint64_t>(bytes, 16)},
                    .payload_bytes = epoch_and_length & ((std::uint64_t{1} << kLengthBits) - 1),
                    .checked = (flags & kChecked) != 0,
                    .checksum = base::get<std::uint32_t>(bytes, 32)};
  check(frame.payload_bytes <= kMaxPayloadBytes, "a frame has {} bytes, more than the limit of {}", frame.payload_bytes,
        kMaxPayloadBytes);
  return frame;
}

}  // namespace syncopate::transport::tcp
