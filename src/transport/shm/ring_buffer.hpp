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
/// What fits into the record's first line beside its fields.
inline constexpr std::size_t kInlineBytes = 24;

/// What a record is.
enum class Kind : std::uint32_t {
  piece = 0,      ///< a piece of a frame
  reply = 1,      ///< a whole frame that was written over one of the other direction's ring, at this position there
  reference = 2,  ///< a whole frame that lies at this place of its sender's heap
  loan = 3,       ///< the same, and a reply may be written over it
  returned = 4,   ///< a whole frame that was written over a loan, at this place of its receiver's heap
};
inline constexpr std::uint32_t kKinds = 5;

// A record, from a multiple of kLineBytes on:
//   0 u64 mark: its position in the ring + 1, written last; 0 while it is not there
//   8 u64 operation   16 u64 signature   24 u64 bytes of the frame   32 u32 bytes of this piece   36 u32 kind
//   40 the piece, if it has at most kInlineBytes; else it begins in the next line
// Of other kinds than `piece` the piece is a u64: where the frame lies. References and loans have a second one, the
// hold: 0 offered; 2 the reader touches the memory; 1 it needs it no longer; 3 the sender took the offer back before
// the reader came to it. Law: before a record's mark is written, the mark behind it is zero. So the reader needs no
// other word to know what is there, and a small frame costs one cache line.

/// Positions count bytes since the ring was made; they never go back and index the ring modulo its size.
class RingWriter final {
 public:
  RingWriter(std::byte* ring, std::uint64_t* tail) noexcept : ring_(ring), tail_word_(tail) {}
  /// Puts a piece into the ring; false if there is no room. Throws Corrupt if the reader's tail cannot be right.
  [[nodiscard]] bool push(const FrameHead& frame, base::ConstBytes piece) { return put(frame, piece, Kind::piece); }
  /// The same for a frame that lies elsewhere.
  [[nodiscard]] bool push(const FrameHead& frame, Kind kind, std::uint64_t place);
  /// Where the next record will be.
  [[nodiscard]] std::uint64_t position() const noexcept { return head_; }
  /// Whether the reader needs a reference's memory no longer; `position` is the record's.
  [[nodiscard]] bool is_given_back(std::uint64_t position) const noexcept;
  /// Takes the offer of a reference back; false while the reader touches its memory.
  [[nodiscard]] bool revoke(std::uint64_t position) noexcept;
  /// What the reader wrote over bytes that it has not given back. Throws Corrupt if they cannot be that.
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
  std::uint64_t at = 0, end = 0;  ///< positions of the piece, and behind the record
  std::uint64_t place = 0;        ///< of other kinds than `piece`: where the frame lies
};

class RingReader final {
 public:
  RingReader(std::byte* ring, std::uint64_t* tail) noexcept : ring_(ring), tail_word_(tail) {}
  /// The next record, if it is there. Throws Corrupt if it cannot be one.
  [[nodiscard]] std::optional<Record> look() const;
  /// Goes on behind `record`; its bytes stay until they are given back.
  void pass(const Record& record) noexcept { next_ = record.end; }
  /// Before the memory that `reference` tells of is touched; false if its owner took the offer back.
  [[nodiscard]] bool hold(const Record& reference) noexcept;
  /// That memory is needed no longer.
  void give_back(const Record& reference) noexcept;
  /// Everything before the position `end` may be overwritten.
  void give_back(std::uint64_t end) noexcept;
  /// Whether passed records have not been given back.
  [[nodiscard]] bool holds() const noexcept { return tail_ != next_; }

 private:
  std::byte* ring_;
  std::uint64_t* tail_word_;
  std::uint64_t next_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace syncopate::transport::shm
