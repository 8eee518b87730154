// A stranger: messages and frames that a test writes byte by byte, and its operations on a connection.
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "transport/ranks.hpp"

namespace syncopate::transport::test {

/// Bytes written field by field, little-endian. They use no encoder of the library, because they test its decoders.
class Written final {
 public:
  template <std::integral T>
  Written& number(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
    return *this;
  }
  Written& raw(std::string_view text) {
    bytes += text;
    return *this;
  }
  /// A text after its length.
  Written& text(std::string_view value) { return number(static_cast<std::uint32_t>(value.size())).raw(value); }
  /// A rank's progress.
  Written& progress(std::int32_t rank, std::uint64_t operation, std::string_view called) {
    return number(rank).number(operation).text(called);
  }
  std::string bytes;
};

/// A control message after its length.
inline std::string message(const Written& body) { return Written().text(body.bytes).bytes; }

namespace control {
inline std::string heartbeat(std::int32_t rank, std::uint64_t operation, std::string_view called,
                             std::uint64_t rolling = 0) {
  return message(Written()
                     .number(std::uint8_t{0})
                     .progress(rank, operation, called)
                     .number(rolling)
                     .progress(rank, operation, called));
}
inline std::string failure(ErrorKind kind, std::string_view said) {
  return message(Written()
                     .number(std::uint8_t{1})
                     .number(static_cast<std::uint8_t>(kind))
                     .text(said)
                     .number(-1)
                     .number(-1)
                     .text("")
                     .text(""));
}
inline std::string goodbye(std::int32_t rank, std::uint64_t operation) {
  return message(Written().number(std::uint8_t{2}).number(rank).number(operation).number(std::uint32_t{0}));
}
inline std::string question(std::int32_t from, std::int32_t to, std::uint64_t operation) {
  return message(Written().number(std::uint8_t{3}).number(from).number(to).number(operation));
}
inline std::string reply(std::int32_t from, std::int32_t to, std::uint64_t operation, std::string_view called) {
  return message(Written()
                     .number(std::uint8_t{4})
                     .number(from)
                     .number(to)
                     .number(operation)
                     .text(called)
                     .progress(from, operation, called));
}
inline std::string regrouped() { return message(Written().number(std::uint8_t{5})); }
}  // namespace control

/// The fields of a frame's header; the header's checksum is right unless `damage` is set.
struct FrameFields {
  std::uint32_t group = 0;
  std::uint64_t operation = 5, signature = 9;
  std::uint64_t epoch_and_length = 8;
  std::uint16_t magic = 0x4653;
  std::uint8_t version = 2, flags = 0;
  std::uint32_t payload_checksum = 0;
  std::uint32_t damage = 0;  ///< added to the checksum of the header

  [[nodiscard]] std::string header() const {
    Written all;
    all.number(magic).number(version).number(flags).number(group).number(operation).number(signature);
    all.number(epoch_and_length).number(payload_checksum);
    return all.number(static_cast<std::uint32_t>(XXH3_64bits(all.bytes.data(), all.bytes.size())) + damage).bytes;
  }
};

/// Writes all bytes, at the pace of the reader; false once the other end has closed the connection.
inline bool say(socket::Channel& channel, std::string_view bytes) {
  while (!bytes.empty()) {
    const socket::Moved moved = channel.write(std::as_bytes(std::span(bytes)));
    if (moved.outcome == socket::Moved::Outcome::closed) return false;
    bytes.remove_prefix(moved.bytes);
    pollfd one{channel.number(), POLLOUT, 0};
    if (!bytes.empty() && ::poll(&one, 1, 60'000) != 1) return false;
  }
  return true;
}

/// Reads until `enough` bytes have arrived, the other end closes, or a minute is over.
inline std::string hear(
    socket::Channel& channel,
    const std::function<bool(const std::string&)>& enough = [](const auto&) { return false; }) {
  std::string heard;
  for (const base::Time end = in(60s); !enough(heard) && std::chrono::steady_clock::now() < end;) {
    pollfd one{channel.number(), POLLIN, 0};
    ::poll(&one, 1, 100);
    char piece[4096];
    const socket::Moved moved = channel.read(std::as_writable_bytes(std::span(piece)));
    if (moved.outcome == socket::Moved::Outcome::closed) break;
    heard.append(piece, moved.bytes);
  }
  return heard;
}

/// Whether the other end closes the connection within a minute.
inline bool is_cut_off(socket::Channel& channel) {
  std::ignore = hear(channel);
  std::byte byte;
  return channel.read(std::span(&byte, 1)).outcome == socket::Moved::Outcome::closed;
}

}  // namespace syncopate::transport::test
