// Link, the receiving side: matches frames with receives, lends memory, and takes replies.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "syncopate/error.hpp"
#include "transport/matching.hpp"
#include "transport/shm/link.hpp"

namespace syncopate::transport::shm {

namespace {

/// Smaller arrivals are copied to the posted span: that is faster than keeping account of a loan.
constexpr std::size_t kWorthBorrowing = 512;

bool lies_in_a_heap(Kind kind) noexcept { return kind == Kind::reference || kind == Kind::loan; }

}  // namespace

void Link::pull(std::vector<Event>& finished) {
  while (!in_.empty()) {
    auto record = reader_->look();
    if (!record) return;
    if (record->kind != Kind::piece) record->piece = frame_elsewhere(*record);
    if (!fits(*record, in_.front())) return;
    // A peer that takes an offer back has given up; control will report the reason.
    if (lies_in_a_heap(record->kind) && !reader_->hold(*record)) return;
    reader_->pass(*record);
    count(traffic_.received, record->piece.size());
    arrive(*record, finished);
  }
}

base::Bytes Link::frame_elsewhere(const Record& record) {
  if (lies_in_a_heap(record.kind)) return theirs_->at(record.place, record.frame.bytes);
  if (record.kind == Kind::reply) return writer_->replied(record.place, record.frame.bytes);
  const base::Bytes wanted = in_.front().into.first(std::min<std::size_t>(record.frame.bytes, in_.front().into.size()));
  if (heap_.place_of(wanted) != record.place)
    throw Corrupt(fmt::format("a frame is at {} of this rank's heap, where this rank expects no reply", record.place));
  return wanted;
}

bool Link::fits(const Record& record, const Incoming& post) {
  const FrameHead& frame = record.frame;
  if (auto wrong = match({post.label, post.into.size()}, frame)) {
    fail(std::move(*wrong));
    return false;
  }
  const std::size_t missing = frame.bytes - have_;
  const std::size_t due = record.kind == Kind::piece ? std::min(kMostPiece, missing) : missing;
  if (record.piece.size() != due)
    throw Corrupt(
        fmt::format("a piece has {} bytes where {} of {} were missing", record.piece.size(), missing, frame.bytes));
  return true;
}

/// A frame in one record is lent; the pieces of a long one are copied to the posted span. A reply that was returned
/// into a loan is already in place. A reply in the ring is copied at once: each end may hold bytes for replies that lie
/// after such bytes, and the two ends would wait for each other.
void Link::arrive(const Record& record, std::vector<Event>& finished) {
  const Incoming post = in_.front();
  const bool whole = record.piece.size() == record.frame.bytes;
  const bool is_lent = record.kind == Kind::piece || lies_in_a_heap(record.kind);
  if (whole && is_lent && record.piece.size() >= kWorthBorrowing) {
    borrowed_.emplace_back(post.token, record);
    in_.pop_front();
    finished.emplace_back(post.token, true, record.piece);
    return;
  }
  if (!record.piece.empty() && record.kind != Kind::returned)
    std::memcpy(post.into.data() + have_, record.piece.data(), record.piece.size());
  have_ += record.piece.size();
  if (lies_in_a_heap(record.kind)) {
    reader_->give_back(record);
    changed(kRoom);
  }
  if (record.kind == Kind::reply) {
    std::atomic_ref(*region_->replies(side_)).store(++replies_read_, std::memory_order_release);
    changed(kRoom);
  }
  if (borrowed_.empty()) {
    give_back(record.end);
  } else {
    borrowed_.emplace_back(0, record, true);
  }
  if (have_ < post.into.size()) return;
  have_ = 0;
  in_.pop_front();
  finished.emplace_back(post.token, true, post.into);
}

Link::Borrowed* Link::borrowed(std::uint64_t token) noexcept {
  const auto found = std::find_if(borrowed_.begin(), borrowed_.end(), [&](const Borrowed& borrowed) {
    return borrowed.token == token && !borrowed.released;
  });
  return found == borrowed_.end() ? nullptr : &*found;
}

bool Link::release(std::uint64_t token) noexcept {
  Borrowed* found = borrowed(token);
  if (found == nullptr) return false;
  finish_with(*found);
  give_back_prefix();
  return true;
}

void Link::withdraw() noexcept {
  for (Borrowed& arrival : borrowed_)
    if (!arrival.released) finish_with(arrival);
  borrowed_.clear();
  in_.clear();
  out_.clear();
}

void Link::finish_with(Borrowed& arrival) noexcept {
  arrival.released = true;
  if (!lies_in_a_heap(arrival.record.kind)) return;
  reader_->give_back(arrival.record);
  changed(kRoom);
}

ReplyMemory Link::reply_memory(std::uint64_t arrival) noexcept {
  const Borrowed* found = borrowed(arrival);
  if (found == nullptr || found->record.kind == Kind::reference) return {};
  return {found->record.piece, found->record.kind == Kind::loan};
}

void Link::reply(std::uint64_t arrival, const Frame& frame, std::vector<Event>& finished) {
  Borrowed* found = borrowed(arrival);
  const bool may_leave = found != nullptr && found->record.kind != Kind::reference && out_.empty() && !link_failure_;
  if (may_leave && leave_at_once(*found, {frame.label, frame.bytes.size()})) {
    finished.emplace_back(frame.token, false);
    return;
  }
  release(arrival);
  send(frame, finished);
}

bool Link::leave_at_once(Borrowed& arrival, const FrameHead& frame) {
  const bool is_loan = arrival.record.kind == Kind::loan;
  bool has_room = false;
  attempt([&] {
    has_room = is_loan ? writer_->push(frame, Kind::returned, arrival.record.place)
                       : writer_->push(frame, Kind::reply, arrival.record.at);
  });
  if (!has_room) return false;
  if (!is_loan) arrival.reply = ++replies_;
  finish_with(arrival);
  if (is_loan) give_back_prefix();
  count(traffic_.sent, frame.bytes);
  changed(kFrames);
  return true;
}

std::uint64_t Link::replies_seen() const noexcept {
  return std::atomic_ref(*region_->replies(other(side_))).load(std::memory_order_acquire);
}

void Link::give_back_prefix() noexcept {
  std::uint64_t end = 0;
  for (; !borrowed_.empty() && borrowed_.front().released; borrowed_.pop_front()) {
    if (borrowed_.front().reply > replies_seen()) break;
    end = borrowed_.front().record.end;
  }
  if (end != 0) give_back(end);
}

}  // namespace syncopate::transport::shm
