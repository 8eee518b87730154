// MessageBytes: messages as bytes: a number for the kind, one for each field, all little-endian u64, then the body.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "server/message.hpp"
#include "server/streams/stream.hpp"

namespace syncopate::server {

/// The bytes of a message before its body.
class MessageHead final {
 public:
  void add(std::uint64_t number) {
    base::put(bytes_, size_, number);
    size_ += sizeof number;
  }
  [[nodiscard]] base::ConstBytes bytes() const noexcept { return base::ConstBytes(bytes_).first(size_); }

 private:
  std::array<std::byte, streams::kMostHeadBytes> bytes_{};
  std::size_t size_ = 0;
};

struct MessageBytes {
  MessageHead head{};
  Payload body{};
};

[[nodiscard]] MessageBytes bytes_of(const WorkerMessage& message);
[[nodiscard]] MessageBytes bytes_of(const ServerMessage& message);
/// Throws Corrupt if the bytes are not such a message: an unknown kind, a number outside the values of its field, bytes
/// that are missing or follow the end, a body above kMostBodyBytes.
[[nodiscard]] WorkerMessage worker_message_of(Payload bytes);
[[nodiscard]] ServerMessage server_message_of(Payload bytes);

/// The message's body, as a pointer; null if its kind has none. `message`: a variant of messages.
[[nodiscard]] auto body_of(auto& message) {
  std::conditional_t<std::is_const_v<std::remove_reference_t<decltype(message)>>, const Payload, Payload>* body =
      nullptr;
  const auto find = [&](auto& field) {
    if constexpr (requires { field.owner; }) body = &field;
  };
  std::visit([&](auto& of) { std::apply([&](auto&... field) { (find(field), ...); }, of.fields(of)); }, message);
  return body;
}

[[nodiscard]] std::size_t body_bytes(const auto& message) {
  const Payload* const body = body_of(message);
  return body == nullptr ? 0 : body->bytes.size();
}

/// Queues the message on a stream.
void send(streams::Stream& stream, std::uint64_t priority, const auto& message) {
  MessageBytes bytes = bytes_of(message);
  stream.send(priority, bytes.head.bytes(), std::move(bytes.body));
}

}  // namespace syncopate::server
