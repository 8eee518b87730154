// Transport: non-blocking posts of whole frames between this rank and its peers, and one poll that reports events.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"

namespace syncopate::transport {

class Lending;

/// The header of a frame without its length; a receive states the label that it expects.
struct Label {
  std::uint64_t operation = 0;  ///< number of the operation in its group
  std::uint64_t signature = 0;  ///< hash of everything all ranks must agree on
  bool pairwise = false;        ///< only the two ends know the length; not sent
  friend bool operator==(const Label& a, const Label& b) noexcept {
    return a.operation == b.operation && a.signature == b.signature;
  }
};

/// Contents of a frame's header.
struct FrameHead {
  Label label;
  std::uint64_t bytes = 0;  ///< of the whole frame
};

/// Argument of `send`.
struct Frame {
  int peer = 0;
  Label label;
  base::ConstBytes bytes;
  std::uint64_t token = 0;
};

/// A finished post. For a receive `bytes` holds the arrival: either the posted span, or memory borrowed from the
/// transport (a peer's own buffer, in shared memory) that stays valid until `release`.
struct Event {
  std::uint64_t token = 0;
  bool arrival = false;
  base::ConstBytes bytes;
};

/// Preferred frame lengths on a link. A wire takes a quarter of a range at a time, so that the next rank starts after a
/// quarter, within bounds: the number of shorter frames would cost more than the earlier start saves. Between ranks
/// that share memory a frame, its copy and its addend must fit into the second-level cache together, and shorter frames
/// bring nothing.
struct FrameLengths {
  std::size_t shortest = 0, longest = 0;
};
inline constexpr FrameLengths kWireFrames{std::size_t{16} << 10, std::size_t{128} << 10};
inline constexpr FrameLengths kMemoryFrames{std::size_t{64} << 10, std::size_t{64} << 10};

/// How long a poll without results may stay awake before it sleeps. Spinning saves a wake-up (about 50 us on a virtual
/// machine) but takes a core from ranks that share it; a thread that runs concurrently with a backward pass does not
/// spin.
struct Patience {
  base::Duration spin{0};
};

/// One rank's end of its links. Used by one thread at a time, except `wake`.
/// Order law: frames to one peer leave in the order of their posts and match that peer's receives in the order of those
/// posts. Operations of a group are posted in the same order on all ranks; a frame whose receive is not posted yet
/// waits in the link (credit by back-pressure). An earlier operation needs nothing of a later one, so the waiting frame
/// cannot block it.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Preferred lengths of frames to and from `peer`. Both ends return the same.
  [[nodiscard]] virtual FrameLengths frame_lengths(int /*peer*/) const noexcept { return kWireFrames; }
  /// The optional operations of this transport; null if peers cannot reach this rank's memory.
  [[nodiscard]] virtual Lending* lending() noexcept { return nullptr; }
  /// Posts a frame. Its bytes (possibly none) must stay unchanged until the event with its token.
  virtual void send(const Frame& frame) = 0;
  /// Posts a receive of exactly `into.size()` bytes. A frame with another label or length is a Mismatch.
  virtual void receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) = 0;
  /// Gives the bytes of an arrival back. Required once for every arrival.
  virtual void release(std::uint64_t token) = 0;
  /// Returns the posts finished since the last poll; valid until the next call. Waits until there are some, `deadline`,
  /// or `wake`; then the result may be empty. Throws the group's failure (Control); a failure of this rank's links is
  /// reported to Control first.
  [[nodiscard]] virtual std::span<const Event> poll(base::Time deadline, Patience patience) = 0;
  /// Makes a poll in another thread return.
  virtual void wake() noexcept = 0;
  /// Bytes sent and received so far, headers included. Thread-safe.
  [[nodiscard]] virtual std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept = 0;
};

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
