// Message: what travels in one message of gRPC, packed without copying bodies, unpacked with one copy.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>
#include <string_view>

#include "server/rpc/outbox.hpp"

namespace syncopate::server::rpc {

enum class Kind : std::uint8_t { message = 1, farewell = 2, heartbeat = 3 };
/// Of a farewell's text.
inline constexpr std::size_t kMostTextBytes = 1000;
/// A byte for the kind, head and body.
inline constexpr std::size_t kMostWireBytes = 1 + kMostHeadBytes + kMostBodyBytes;

/// The buffer refers to the body and owns its owner, until gRPC has written it.
[[nodiscard]] grpc::ByteBuffer pack(Outgoing message);
/// The last message of an end: an empty text for an end in order.
[[nodiscard]] grpc::ByteBuffer pack_farewell(std::string_view error);

/// What is sent where there is nothing else.
[[nodiscard]] grpc::ByteBuffer pack_heartbeat();

struct Incoming {
  Kind kind = Kind::message;
  Payload payload;  ///< without the kind
};
/// Nothing for what is none of the three: of another kind, empty, or too long.
[[nodiscard]] std::optional<Incoming> unpack(const grpc::ByteBuffer& buffer);

/// Text from the other end as it may stand in an error: printable, at most kMostTextBytes.
[[nodiscard]] std::string readable(base::ConstBytes text);

}  // namespace syncopate::server::rpc
