// Ring buffer: one direction of a region: records are written at one end and read in place at the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "transport/shm/region.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::shm {

/// A frame travels in one record, or in several if it is longer than this.
inline constexpr std::size_t kMostPiece = kMemoryFrames.longest;
/// Bytes that fit into the record's first line next to its fields.
inline constexpr std::size_t kInlineBytes = 24;

/// Kinds of records.
enum class Kind : std::uint32_t {
  piece = 0,      ///< a piece of a frame
  reply = 1,      ///< a whole frame that was written over a frame in the other direction's ring, at this position there
  reference = 2,  ///< a whole frame that lies at this offset of its sender's heap
  loan = 3,       ///< a reference over which a reply may be written
  returned = 4,   ///< a whole frame that was written over a loan, at this offset of its receiver's heap
};
inline constexpr std::uint32_t kKinds = 5;

// A record, from a multiple of kLineBytes on:
//   0 u64 mark: its position in the ring + 1, written last; 0 while it is not there
//   8 u64 operation   16 u64 signature   24 u64 bytes of the frame   32 u32 bytes of this piece   36 u32 kind
//   40 the piece, if it has at most kInlineBytes; else it begins in the next line
// Kinds other than `piece` hold a u64 instead of a piece: the frame's place. References and loans have a second one,
// the hold: 0 offered; 2 the reader touches the memory; 1 the reader no longer needs it; 3 the sender took the offer
// back before the reader reached it. Law: before a record's mark is written, the mark after it is zero. The reader
// therefore needs no other word to find records, and a small frame costs one cache line.

/// Positions count bytes since the ring was made; they only grow, and index the ring modulo its size.
class RingWriter final {
 public:
  RingWriter(std::byte* ring, std::uint64_t* tail) noexcept : ring_(ring), tail_word_(tail) {}
  /// Puts a piece into the ring; false if there is no room. Throws Corrupt if the reader's tail is impossible.
  [[nodiscard]] bool push(const FrameHead& frame, base::ConstBytes piece) { return put(frame, piece, Kind::piece); }
  /// Puts the record of a frame that lies elsewhere; false if there is no room.
  [[nodiscard]] bool push(const FrameHead& frame, Kind kind, std::uint64_t place);
  /// Position of the next record.
  [[nodiscard]] std::uint64_t position() const noexcept { return head_; }
  /// Whether the reader no longer needs a reference's memory; `position` is the record's.
  [[nodiscard]] bool is_given_back(std::uint64_t position) const noexcept;
  /// Takes the offer of a reference back; false while the reader touches its memory.
  [[nodiscard]] bool revoke(std::uint64_t position) noexcept;
  /// The reply that the reader wrote over bytes that it has not given back. Throws Corrupt if the range is impossible.
  [[nodiscard]] base::Bytes replied(std::uint64_t position, std::uint64_t bytes) const;

 private:
  [[nodiscard]] bool put(const FrameHead& frame, base::ConstBytes piece, Kind kind);
  [[nodiscard]] bool has_room(std::size_t bytes);
  void prepare_line() noexcept;

  std::byte* ring_;
  std::uint64_t* tail_word_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;   ///< as last read
  std::uint64_t clean_ = 0;  ///< the mark at this position is zero
};

struct Record {
  FrameHead frame;
  Kind kind = Kind::piece;
  base::Bytes piece;              ///< in shared memory: the other end could still change it
  std::uint64_t at = 0, end = 0;  ///< positions of the piece, and after the record
  std::uint64_t place = 0;        ///< of kinds other than `piece`: the frame's place
};

class RingReader final {
 public:
  RingReader(std::byte* ring, std::uint64_t* tail) noexcept : ring_(ring), tail_word_(tail) {}
  /// The next record, if there is one. Throws Corrupt if it is malformed.
  [[nodiscard]] std::optional<Record> look() const;
  /// Moves on to the record after `record`; its bytes stay until they are given back.
  void pass(const Record& record) noexcept { next_ = record.end; }
  /// Call it before touching the memory of `reference`; false if its owner took the offer back.
  [[nodiscard]] bool hold(const Record& reference) noexcept;
  /// Releases that memory.
  void give_back(const Record& reference) noexcept;
  /// Everything before the position `end` may be overwritten.
  void give_back(std::uint64_t end) noexcept;
  /// Whether passed records have not been given back yet.
  [[nodiscard]] bool holds() const noexcept { return tail_ != next_; }

 private:
  std::byte* ring_;
  std::uint64_t* tail_word_;
  std::uint64_t next_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace syncopate::transport::shm
