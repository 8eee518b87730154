// Transport: non-blocking posts of whole frames between this rank and its peers, and one poll that reports events.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"

namespace syncopate::transport {

class Lending;

/// What a frame says about itself beside its length; a receive states the label that it expects.
struct Label {
  std::uint64_t operation = 0;  ///< number of the operation in its group
  std::uint64_t signature = 0;  ///< hash of everything all ranks must agree on
  bool pairwise = false;        ///< only the two ends know the length. It does not travel
  friend bool operator==(const Label& a, const Label& b) noexcept {
    return a.operation == b.operation && a.signature == b.signature;
  }
};

/// What the header of a frame says.
struct FrameHead {
  Label label;
  std::uint64_t bytes = 0;  ///< of the whole frame
};

/// What `send` takes.
struct Frame {
  int peer = 0;
  Label label;
  base::ConstBytes bytes;
  std::uint64_t token = 0;
};

/// A post is finished. For a receive `bytes` holds what arrived: either the span that was posted, or memory borrowed
/// from the transport (a peer's own buffer, in shared memory) that stays valid until `release`.
struct Event {
  std::uint64_t token = 0;
  bool arrival = false;
  base::ConstBytes bytes;
};

/// Into how long frames a range is best cut. A wire takes a quarter of it at a time, so that the next rank starts after
/// a quarter, within bounds: shorter ones cost more by their number than that is worth. Between ranks that share memory
/// a frame, its copy and what it is added to have to fit into the second-level cache together, and no shorter one is
/// worth while.
struct FrameLengths {
  std::size_t shortest = 0, longest = 0;
};
inline constexpr FrameLengths kWireFrames{std::size_t{16} << 10, std::size_t{128} << 10};
inline constexpr FrameLengths kMemoryFrames{std::size_t{64} << 10, std::size_t{64} << 10};

/// How long a poll that finds nothing may stay awake before it sleeps. Spinning saves a wake-up (about 50 us on a
/// virtual machine) but takes a core from ranks that share it; a thread beside a running backward pass does not spin.
struct Patience {
  base::Duration spin{0};
};

/// One rank's end of its links. Used by one thread at a time, except `wake`.
/// Order law: frames to one peer leave in the order of their posts and meet that peer's receives in the order of
/// those posts. Operations of a group are posted in the same order on all ranks; a frame whose receive is not posted
/// yet waits in the link (credit by back-pressure), and since nothing of a later operation is needed by an earlier
/// one, it cannot block it.
class Transport {
 public:
  virtual ~Transport() = default;
  /// How long frames to and from `peer` are best. Both ends say the same.
  [[nodiscard]] virtual FrameLengths frame_lengths(int /*peer*/) const noexcept { return kWireFrames; }
  /// What this transport offers beyond frames; null where peers cannot reach this rank's memory.
  [[nodiscard]] virtual Lending* lending() noexcept { return nullptr; }
  /// Posts a frame. Its bytes (possibly none) must stay unchanged until the event with its token.
  virtual void send(const Frame& frame) = 0;
  /// Posts a receive of exactly `into.size()` bytes. A frame with another label or length is a Mismatch.
  virtual void receive(int peer, const Label& label, base::Bytes into, std::uint64_t token) = 0;
  /// Gives the bytes of an arrival back. Required once for every arrival.
  virtual void release(std::uint64_t token) = 0;
  /// Finished posts since the last poll; valid until the next call. Waits until there are some, `deadline`, or
  /// `wake`; then the result may be empty. Throws the group's failure (Control) and reports its own to Control first.
  [[nodiscard]] virtual std::span<const Event> poll(base::Time deadline, Patience patience) = 0;
  /// Makes a poll in another thread return.
  virtual void wake() noexcept = 0;
  /// Bytes sent and received so far, headers included. Thread-safe.
  [[nodiscard]] virtual std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept = 0;
};

}  // namespace syncopate::transport
