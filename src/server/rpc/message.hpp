// Message: the contents of one gRPC message, packed without copying bodies, unpacked with one copy.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>
#include <string_view>

#include "server/rpc/outbox.hpp"

namespace syncopate::server::rpc {

enum class Kind : std::uint8_t { message = 1, farewell = 2, heartbeat = 3 };
/// Limit of a farewell's text.
inline constexpr std::size_t kMostTextBytes = 1000;
/// Limit of a byte for the kind, head and body.
inline constexpr std::size_t kMostWireBytes = 1 + kMostHeadBytes + kMostBodyBytes;

/// Packs a message. The buffer refers to the body and holds its owner, until gRPC has written it.
[[nodiscard]] grpc::ByteBuffer pack(Outgoing message);
/// The last message of an end: an empty text for an end in order.
[[nodiscard]] grpc::ByteBuffer pack_farewell(std::string_view error);

/// The message that is sent when there is nothing else to send.
[[nodiscard]] grpc::ByteBuffer pack_heartbeat();

struct Incoming {
  Kind kind = Kind::message;
  Payload payload;  ///< without the kind
};
/// Empty for a buffer that is not one of the three kinds: unknown, empty, or too long.
[[nodiscard]] std::optional<Incoming> unpack(const grpc::ByteBuffer& buffer);

/// Text from the other end, made safe for an error message: printable, at most kMostTextBytes.
[[nodiscard]] std::string readable(base::ConstBytes text);

}  // namespace syncopate::server::rpc
