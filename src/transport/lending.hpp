// Lending: memory that peers reach directly, and replies that a peer writes over a received frame.
#pragma once

#include <memory>

#include "transport/transport.hpp"

namespace syncopate::transport {

/// The memory of a lent arrival, if a reply can travel in it (else empty). It may be written.
struct ReplyMemory {
  base::Bytes bytes;
  bool keeps = false;  ///< it may wait for a reply that is posted later: its owner does not need it for anything else
};

/// Optional operations of a transport in addition to frames (Transport::lending), for ranks that reach each other's
/// memory. Used by the thread that uses the transport, except `allocate`.
class Lending {
 public:
  virtual ~Lending() = default;
  /// Memory for vectors, all zero, which peers reach directly: bytes sent from there need not be copied. Thread-safe;
  /// the memory may outlive the transport.
  [[nodiscard]] virtual std::shared_ptr<std::byte[]> allocate(std::size_t bytes) = 0;
  /// Whether the vector lies in such memory.
  [[nodiscard]] virtual bool reaches(base::ConstBytes vector) const noexcept = 0;
  /// Posts a frame whose bytes are next touched by a receive from the same peer into them: the peer may write them
  /// itself.
  virtual void lend(const Frame& frame) = 0;
  [[nodiscard]] virtual ReplyMemory reply_memory(std::uint64_t arrival, int peer) = 0;
  /// Posts a frame to the peer that sent an arrival of the same length, and gives that arrival back. If the arrival has
  /// reply_memory, the caller has written the frame's bytes there.
  virtual void reply(std::uint64_t arrival, const Frame& frame) = 0;
};

}  // namespace syncopate::transport
