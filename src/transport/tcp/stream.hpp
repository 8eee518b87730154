// Stream: one data connection: queued frames to send, and queued receives in the order of the frames to come.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "transport/membership/link_failure.hpp"
#include "transport/socket/channel.hpp"
#include "transport/traffic.hpp"
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

/// Settings that both ends of a group's streams share.
struct FrameRules {
  std::uint64_t group = 0;
  std::uint16_t epoch = 0;
  bool checksum = false;  ///< send payload checksums (received ones are always checked)
  [[nodiscard]] std::uint32_t half_of_group() const noexcept { return static_cast<std::uint32_t>(group); }
};

/// Used by the polling thread only.
class Stream final {
 public:
  Stream(int peer, const FrameRules& rules, LinkTraffic& traffic) : peer_(peer), rules_(rules), traffic_(traffic) {}

  void attach(socket::Channel channel) {
    channel_ = std::move(channel);
    channel_.read_ahead();
  }
  void fail(membership::LinkFailure link_failure);
  [[nodiscard]] bool attached() const noexcept { return static_cast<bool>(channel_); }
  [[nodiscard]] bool healthy() const noexcept { return attached() && !link_failure_; }
  [[nodiscard]] const socket::Channel& channel() const noexcept { return channel_; }
  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] const std::optional<membership::LinkFailure>& link_failure() const noexcept { return link_failure_; }
  [[nodiscard]] bool pending() const noexcept { return !out_.empty() || !in_.empty(); }
  [[nodiscard]] bool sending() const noexcept { return !out_.empty(); }
  /// Payload bytes that posted receives still wait for.
  [[nodiscard]] std::size_t awaited_bytes() const noexcept { return awaited_bytes_; }

  void send(const Label& label, base::ConstBytes bytes, std::uint64_t token);
  void receive(const Label& label, base::Bytes into, std::uint64_t token) {
    in_.push_back({label, into, token});
    awaited_bytes_ += into.size();
  }

  /// Records readiness events; `advance` clears the flags when it reaches the ends of the kernel's buffers.
  void note_ready(std::uint32_t events) noexcept;
  /// Moves what can move and appends finished posts. `direct`: tries the socket even if no event announced it.
  void advance(bool direct, std::vector<Event>& finished);
  /// Call it before this rank sleeps: the rank then wakes for a whole frame, not for every packet of it.
  void announce_whole_frames() noexcept;
  /// Sends queued frames now, as far as the kernel takes them.
  void push(std::vector<Event>& finished);

 private:
  struct Outgoing {
    FrameBytes header;
    base::ConstBytes payload;
    std::uint64_t token = 0;
  };
  struct Incoming {
    Label label;
    base::Bytes into;
    std::uint64_t token = 0;
  };
  static constexpr std::size_t kTailBytes = 8192;
  static constexpr std::size_t kMostUnannounced = std::size_t{128} << 10;
  static constexpr std::size_t kPiecesPerCall = 32;
  static constexpr std::size_t kBytesPerCall = std::size_t{4} << 20;

  void lose(const socket::Moved& moved);
  void sent(std::size_t bytes, std::vector<Event>& finished);
  void pull(std::vector<Event>& finished);
  void take_frames(std::vector<Event>& finished);
  void header_complete();
  void payload_complete(std::vector<Event>& finished);

  const int peer_;
  const FrameRules rules_;
  LinkTraffic& traffic_;
  socket::Channel channel_;
  std::optional<membership::LinkFailure> link_failure_;

  std::deque<Outgoing> out_;
  std::size_t front_sent_ = 0;  ///< bytes of the front frame, header included, that the kernel has taken
  bool writable_ = true;

  std::deque<Incoming> in_;
  std::size_t awaited_bytes_ = 0;
  socket::FrameReader<kFrameHeaderBytes> reader_{kTailBytes};
  Frame frame_;
  bool readable_ = true;
  bool ended_ = false;  ///< the peer will send no more; only reading to the end shows what it sent
};

}  // namespace syncopate::transport::tcp
