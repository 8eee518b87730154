// Ring buffer: one direction of a region: records are written at one end and read in place at the other.
#include "transport/shm/ring_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::transport::shm {

namespace {

constexpr std::size_t kFieldsAt = 8, kInlineAt = 40;

struct Fields {
  std::uint64_t operation, signature, frame_bytes;
  std::uint32_t piece_bytes, kind;
};
static_assert(sizeof(Fields) == kInlineAt - kFieldsAt && kInlineAt + kInlineBytes == kLineBytes);

/// Which end may touch the memory of a reference. Both ends change it; after `offered` only by an atomic exchange.
enum Hold : std::uint64_t { offered = 0, given_back = 1, held = 2, revoked = 3 };

/// The location of a frame's bytes outside the record.
struct Pointer {
  std::uint64_t place = 0;
  std::uint64_t hold = offered;
};
static_assert(sizeof(Pointer) <= kInlineBytes);
constexpr std::size_t kHoldAt = kInlineAt + offsetof(Pointer, hold);

std::atomic_ref<std::uint64_t> word(std::byte* at) noexcept {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

constexpr std::size_t record_bytes(std::size_t piece) noexcept {
  if (piece <= kInlineBytes) return kLineBytes;
  return kLineBytes + (piece + kLineBytes - 1) / kLineBytes * kLineBytes;
}
static_assert(record_bytes(kMostPiece) + kLineBytes <= kRingBytes);

constexpr std::size_t place_of_piece(std::size_t piece) noexcept {
  return piece <= kInlineBytes ? kInlineAt : kLineBytes;
}

}  // namespace

bool RingWriter::has_room(std::size_t bytes) {
  if (kRingBytes - (head_ - tail_) >= bytes) return true;
  const std::uint64_t tail = std::atomic_ref(*tail_word_).load(std::memory_order_acquire);
  if (tail < tail_ || tail > head_ || tail % kLineBytes != 0)
    throw Corrupt(fmt::format("the reader of a ring released {} bytes, of {} written", tail, head_));
  tail_ = tail;
  return kRingBytes - (head_ - tail_) >= bytes;
}

/// Other records lie there only after the reader has given all back.
bool RingWriter::is_given_back(std::uint64_t position) const noexcept {
  return position < tail_ ||
         word(ring_ + position % kRingBytes + kHoldAt).load(std::memory_order_acquire) == given_back;
}

bool RingWriter::revoke(std::uint64_t position) noexcept {
  if (is_given_back(position)) return true;
  std::uint64_t hold = offered;
  word(ring_ + position % kRingBytes + kHoldAt).compare_exchange_strong(hold, revoked);
  return hold != held;
}

base::Bytes RingWriter::replied(std::uint64_t position, std::uint64_t bytes) const {
  if (position < tail_ || position > head_ || bytes > head_ - position || bytes > kMostPiece)
    throw Corrupt(
        fmt::format("a reply of {} bytes lies at {}; allowed: within {} to {}", bytes, position, tail_, head_));
  return {ring_ + position % kRingBytes, bytes};
}

bool RingWriter::push(const FrameHead& frame, Kind kind, std::uint64_t place) {
  const Pointer pointer{.place = place};
  return put(frame, std::as_bytes(std::span(&pointer, 1)), kind);
}

bool RingWriter::put(const FrameHead& frame, base::ConstBytes piece, Kind kind) {
  const std::size_t bytes = record_bytes(piece.size());
  if (!has_room(bytes + kLineBytes)) return false;
  std::byte* record = ring_ + head_ % kRingBytes;
  if (clean_ != head_ + bytes) word(record + bytes).store(0, std::memory_order_relaxed);
  const Fields fields{frame.label.operation, frame.label.signature, frame.bytes,
                      static_cast<std::uint32_t>(piece.size()), static_cast<std::uint32_t>(kind)};
  std::memcpy(record + kFieldsAt, &fields, sizeof fields);
  if (!piece.empty()) std::memcpy(record + place_of_piece(piece.size()), piece.data(), piece.size());
  word(record).store(head_ + 1, std::memory_order_release);
  head_ += bytes;
  prepare_line();
  return true;
}

/// If the next record is one line, the mark after it is already zero: this fetches the line while no rank waits for it.
void RingWriter::prepare_line() noexcept {
  const std::uint64_t behind = head_ + kLineBytes;
  if (kRingBytes - (head_ - tail_) < 2 * kLineBytes) return;
  word(ring_ + behind % kRingBytes).store(0, std::memory_order_relaxed);
  clean_ = behind;
}

std::optional<Record> RingReader::look() const {
  std::byte* record = ring_ + next_ % kRingBytes;
  const std::uint64_t mark = word(record).load(std::memory_order_acquire);
  if (mark == 0) return std::nullopt;
  if (mark != next_ + 1) throw Corrupt(fmt::format("a record at {} is marked {}", next_, mark - 1));
  Fields fields;
  std::memcpy(&fields, record + kFieldsAt, sizeof fields);  // read once: the checked values are the used ones
  const std::size_t bytes = record_bytes(fields.piece_bytes);
  const auto kind = static_cast<Kind>(fields.kind);
  const bool is_piece = kind == Kind::piece;
  const std::size_t most = is_piece ? std::min<std::uint64_t>(fields.frame_bytes, kMostPiece) : sizeof(Pointer);
  if (fields.piece_bytes > most || fields.kind >= kKinds || (!is_piece && fields.piece_bytes != most))
    throw Corrupt(
        fmt::format("a record of kind {} has {} of {} bytes", fields.kind, fields.piece_bytes, fields.frame_bytes));
  if (next_ + bytes + kLineBytes - tail_ > kRingBytes) throw Corrupt("a record overlaps bytes that are in use");
  Record found{{{fields.operation, fields.signature}, fields.frame_bytes},
               kind,
               {record + place_of_piece(fields.piece_bytes), fields.piece_bytes},
               next_ + place_of_piece(fields.piece_bytes),
               next_ + bytes};
  if (!is_piece) std::memcpy(&found.place, found.piece.data() + offsetof(Pointer, place), sizeof found.place);
  return found;
}

bool RingReader::hold(const Record& reference) noexcept {
  std::uint64_t hold = offered;
  return word(ring_ + reference.at % kRingBytes + offsetof(Pointer, hold)).compare_exchange_strong(hold, held);
}

void RingReader::give_back(const Record& reference) noexcept {
  word(ring_ + reference.at % kRingBytes + offsetof(Pointer, hold)).store(given_back, std::memory_order_release);
}

void RingReader::give_back(std::uint64_t end) noexcept {
  tail_ = end;
  std::atomic_ref(*tail_word_).store(end, std::memory_order_release);
}

}  // namespace syncopate::transport::shm
