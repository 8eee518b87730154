// Lane: one direction of a region as its two ends see it: records go in at one, and are read in place at the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "transport/shm/region.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::shm {

/// A frame travels in one record, or in several if it is longer than this.
inline constexpr std::size_t kMostPiece = kMemoryFrame;
/// What fits into the record's first line beside its fields.
inline constexpr std::size_t kInlineBytes = 24;

/// What all records of a frame say about it.
struct FrameHead {
  Label label;
  std::uint64_t bytes = 0;  ///< of the whole frame
};

// A record, from a multiple of kLineBytes on:
//   0 u64 mark: its position in the lane + 1, written last; 0 while it is not there
//   8 u64 operation   16 u64 signature   24 u64 bytes of the frame   32 u32 bytes of this piece   36 u32 kind
//   40 the piece, if it has at most kInlineBytes; else it begins in the next line
// Kind 0 is a piece of a frame. Kind 1 is a reply: a whole frame that was written over one of the other direction's
// lane; the piece is the u64 position there.
// Law: before a record's mark is written, the mark behind it is zero. So the reader needs no other word to know what is
// there, and a small frame costs one cache line.

/// Positions count bytes since the lane was made; they never go back and index the ring modulo its size.
class LaneWriter final {
 public:
  LaneWriter(std::byte* ring, std::uint64_t* tail) noexcept : ring_(ring), tail_word_(tail) {}
  /// Puts a piece into the lane; false if there is no room. Throws Corrupt if the reader's tail cannot be right.
  [[nodiscard]] bool push(const FrameHead& frame, base::ConstBytes piece) { return put(frame, piece, Kind::piece); }
  /// The same for a frame that lies at `position` of the other direction's lane.
  [[nodiscard]] bool push_reply(const FrameHead& frame, std::uint64_t position);
  /// What the reader wrote over bytes that it has not given back. Throws Corrupt if they cannot be that.
  [[nodiscard]] base::Bytes replied(std::uint64_t position, std::uint64_t bytes) const;

 private:
  enum class Kind : std::uint32_t { piece = 0, reply = 1 };
  friend class LaneReader;

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
  base::Bytes piece;                     ///< in shared memory: the other end could still change it
  std::uint64_t at = 0, end = 0;         ///< positions of the piece, and behind the record
  std::optional<std::uint64_t> reply{};  ///< instead of a piece: where in the other lane the frame lies
};

class LaneReader final {
 public:
  LaneReader(std::byte* ring, std::uint64_t* tail) noexcept : ring_(ring), tail_word_(tail) {}
  /// The next record, if it is there. Throws Corrupt if it cannot be one.
  [[nodiscard]] std::optional<Record> look() const;
  /// Goes on behind `record`; its bytes stay until they are given back.
  void pass(const Record& record) noexcept { next_ = record.end; }
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
