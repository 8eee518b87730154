// Outbox: messages that wait to be sent, in the order of their priorities; bodies are not copied.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "server/streams/frame.hpp"

namespace syncopate::server::streams {

/// A frame to send: its header and head by value, its body with the owner that keeps it alive.
struct OutgoingFrame {
  std::array<std::byte, kFrameHeaderBytes + kMostHeadBytes> front;
  std::size_t front_bytes = 0;
  Payload body;
  [[nodiscard]] std::size_t bytes() const noexcept { return front_bytes + body.bytes.size(); }
};

/// Lower numbers first; equal ones in the order of arrival.
class Outbox final {
 public:
  void push(std::uint64_t priority, OutgoingFrame frame) { waiting_.emplace(priority, std::move(frame)); }
  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
  [[nodiscard]] OutgoingFrame pop() { return std::move(waiting_.extract(waiting_.begin()).mapped()); }

 private:
  std::multimap<std::uint64_t, OutgoingFrame> waiting_;
};

}  // namespace syncopate::server::streams
