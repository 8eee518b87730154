// Region: the sealed memory that two ranks share, checked before it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/fork.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::shm {

/// Bytes of one ring, a power of two. Every byte of it is used in turn, so it is as small as three frames and the bytes
/// being read allow: the rings of a rank then stay in its second-level cache together with the current piece of the
/// vector.
inline constexpr std::size_t kRingBytes = std::size_t{256} << 10;
/// A record begins at a multiple of this, so that a small frame is one cache line.
inline constexpr std::size_t kLineBytes = 64;

/// The two ends of a region: its maker, and the guest that received it.
enum class Side : std::uint8_t { maker = 0, guest = 1 };
[[nodiscard]] constexpr Side other(Side side) noexcept { return side == Side::maker ? Side::guest : Side::maker; }

/// Owns a mapping: two rings, one per direction, and a few words. Each ring is mapped twice in a row, so that a record
/// may wrap around its end without a seam. The memory is anonymous and sealed against resizing: it vanishes with its
/// processes, and neither end can shrink it under the other. A forked child does not have it.
class Region final {
 public:
  /// New memory, all zero. Throws SystemFailure.
  [[nodiscard]] static Region make();
  /// Memory from another process. Throws Corrupt unless it is sealed and has the right size.
  [[nodiscard]] static Region adopt(socket::Descriptor memory);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  /// 2 * kRingBytes of addresses: the ring that `writer` fills, twice.
  [[nodiscard]] std::byte* ring(Side writer) const noexcept;
  /// Position up to which the reader of that ring has given bytes back.
  [[nodiscard]] std::uint64_t* tail(Side writer) const noexcept;
  /// The word that states what this end waits for while it sleeps.
  [[nodiscard]] std::uint64_t* sleeper(Side side) const noexcept;
  /// Number of replies that this end has read.
  [[nodiscard]] std::uint64_t* replies(Side side) const noexcept;
  [[nodiscard]] const socket::Descriptor& memory() const noexcept { return memory_; }
  /// Closes the descriptor and keeps the mapping; the descriptor is needed only to pass the memory on.
  void close_descriptor() noexcept { const socket::Descriptor gone = std::move(memory_); }

 private:
  explicit Region(socket::Descriptor memory);

  socket::Descriptor memory_;
  std::byte* base_ = nullptr;
  base::OwnProcess process_;
};

}  // namespace syncopate::transport::shm
