// SentBytes: a message as its receiver gets it, the head and the body in one piece.
#pragma once

#include "server/message_bytes.hpp"

namespace syncopate::server {

[[nodiscard]] inline Payload joined(base::ConstBytes head, const Payload& body) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(head.begin(), head.end());
  bytes->insert(bytes->end(), body.bytes.begin(), body.bytes.end());
  return {bytes, base::ConstBytes(*bytes)};
}

[[nodiscard]] Payload sent_bytes(const auto& message) {
  const MessageBytes bytes = bytes_of(message);
  return joined(bytes.head.bytes(), bytes.body);
}

}  // namespace syncopate::server
