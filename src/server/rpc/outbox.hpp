// Outbox: messages that wait to be sent, in the order of their priorities; bodies are not copied.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "server/rpc/stream.hpp"

namespace syncopate::server::rpc {

/// A message to send: its head by value, its body with the owner that keeps it alive.
struct Outgoing {
  std::array<std::byte, kMostHeadBytes> head;
  std::size_t head_bytes = 0;
  Payload body;
};

/// Lower numbers first; equal ones in the order of arrival.
class Outbox final {
 public:
  void push(std::uint64_t priority, Outgoing message) { waiting_.emplace(priority, std::move(message)); }
  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
  [[nodiscard]] Outgoing pop() { return std::move(waiting_.extract(waiting_.begin()).mapped()); }
  void clear() noexcept { waiting_.clear(); }

 private:
  std::multimap<std::uint64_t, Outgoing> waiting_;
};

}  // namespace syncopate::server::rpc
