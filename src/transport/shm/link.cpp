// Link: this rank's end of the memory it shares with one peer: frames queued to go out, receives queued to be met.
#include "transport/shm/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "syncopate/error.hpp"
#include "transport/control.hpp"
#include "transport/shm/barrier.hpp"
#include "transport/shm/handover.hpp"

namespace syncopate::transport::shm {

namespace {

// What a sleeper waits for.
constexpr std::uint64_t kFrames = 1, kRoom = 2;
/// Smaller arrivals are copied to where they were wanted: that takes less than keeping account of them.
constexpr std::size_t kWorthBorrowing = 512;
/// A piece counts like a frame on the wire: its line of fields and what follows it.
constexpr std::size_t counted(std::size_t piece) noexcept { return kLineBytes + (piece > kInlineBytes ? piece : 0); }

void add(std::atomic<std::uint64_t>& counter, std::size_t bytes) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

}  // namespace

void Link::attach(tcp::Channel channel, Side side) {
  channel_ = std::move(channel);
  side_ = side;
  if (side != Side::maker) return;
  map(Region::make());
  if (!give(channel_.socket(), region_->memory())) return fail({Trouble::Kind::lost, "the connection was closed", {}});
  region_->close_descriptor();
}

void Link::map(Region region) {
  region_.emplace(std::move(region));
  writer_.emplace(region_->ring(side_), region_->tail(side_));
  reader_.emplace(region_->ring(other(side_)), region_->tail(other(side_)));
}

void Link::fail(Trouble trouble) {
  if (!trouble_) trouble_ = std::move(trouble);
}

/// The guest takes the memory and rings; the maker waits for that.
void Link::open_region() {
  if (!channel_) return;
  if (side_ == Side::maker) {
    std::size_t rings = 0;
    if (!hear(channel_, rings)) return fail({Trouble::Kind::lost, "the connection was closed", {}});
    open_ = rings > 0;
    return;
  }
  auto memory = take(channel_.socket());
  if (!memory) return;
  map(Region::adopt(std::move(*memory)));
  region_->close_descriptor();
  open_ = true;
  ring(channel_);
}

void Link::send(const Label& label, base::ConstBytes bytes, std::uint64_t token, std::vector<Event>& finished) {
  out_.emplace_back(label, bytes, token);
  if (out_.size() == 1 && open_ && !trouble_) progress(finished);
}

void Link::progress(std::vector<Event>& finished) noexcept {
  if (trouble_) return;
  attempt([&] { move(finished); });
}

template <class Move>
void Link::attempt(Move move) noexcept try {
  move();
} catch (const Corrupt& corrupt) {
  fail({Trouble::Kind::corrupt, corrupt.what(), {}});
} catch (const std::exception& error) {
  fail({Trouble::Kind::lost, error.what(), {}});
}

void Link::move(std::vector<Event>& finished) {
  if (!open_) {
    open_region();
    if (!open_) return;
    lie_down();
    heavy_barrier();  // this may be the last look before a sleep, and so far the region could not know of it
  }
  if (!borrowed_.empty() && borrowed_.front().reply != 0) give_back_prefix();
  if (!out_.empty()) push(finished);
  if (!in_.empty()) pull(finished);
}

void Link::push(std::vector<Event>& finished) {
  bool moved = false;
  while (!out_.empty() && push_front()) {
    moved = true;
    Outgoing& frame = out_.front();
    if (frame.gone < frame.bytes.size()) continue;
    finished.emplace_back(frame.token, false);
    out_.pop_front();
  }
  if (moved) changed(kFrames);
}

bool Link::push_front() {
  Outgoing& frame = out_.front();
  const auto piece = frame.bytes.subspan(frame.gone, std::min(kMostPiece, frame.bytes.size() - frame.gone));
  if (!writer_->push({frame.label, frame.bytes.size()}, piece)) return false;
  frame.gone += piece.size();
  add(counters_.sent, counted(piece.size()));
  return true;
}

void Link::pull(std::vector<Event>& finished) {
  while (!in_.empty()) {
    auto record = reader_->look();
    if (!record) return;
    if (record->reply) record->piece = writer_->replied(*record->reply, record->frame.bytes);
    if (!fits(*record, in_.front())) return;
    reader_->pass(*record);
    add(counters_.received, counted(record->piece.size()));
    arrive(*record, finished);
  }
}

bool Link::fits(const Record& record, const Incoming& post) {
  const FrameHead& frame = record.frame;
  const bool same_kind = is_message(frame.label.operation) == is_message(post.label.operation);
  // An operation in which this rank expected nothing (it called it with no elements): that one is what they differ in.
  if (same_kind && frame.label.operation < post.label.operation)
    fail({Trouble::Kind::other_operation, {}, frame.label});
  else if (frame.label != post.label)
    fail({Trouble::Kind::other_operation, {}, post.label});
  else if (frame.bytes != post.into.size())
    fail({Trouble::Kind::other_length,
          fmt::format("sent {} bytes where {} were expected", frame.bytes, post.into.size()), post.label});
  else if (record.piece.size() != std::min<std::size_t>(kMostPiece, frame.bytes - have_))
    throw Corrupt(fmt::format("a piece of {} bytes came where {} of {} were missing", record.piece.size(),
                              frame.bytes - have_, frame.bytes));
  return !trouble_;
}

/// A frame in one record is lent; the pieces of a long one are put together where it was wanted. A reply is copied at
/// once: each end may hold bytes for replies that lie behind such bytes, and would wait for the other to give them
/// back.
void Link::arrive(const Record& record, std::vector<Event>& finished) {
  const Incoming post = in_.front();
  const bool whole = record.piece.size() == record.frame.bytes;
  if (whole && !record.reply && record.piece.size() >= kWorthBorrowing) {
    borrowed_.emplace_back(post.token, record.end, false, record.piece, record.at);
    in_.pop_front();
    finished.emplace_back(post.token, true, record.piece);
    return;
  }
  if (!record.piece.empty()) std::memcpy(post.into.data() + have_, record.piece.data(), record.piece.size());
  have_ += record.piece.size();
  if (record.reply) {
    std::atomic_ref(*region_->replies(side_)).store(++replies_read_, std::memory_order_release);
    changed(kRoom);
  }
  if (borrowed_.empty()) {
    give_back(record.end);
  } else {
    borrowed_.push_back({0, record.end, true});
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
  found->released = true;
  give_back_prefix();
  return true;
}

base::Bytes Link::reply_memory(std::uint64_t arrival) noexcept {
  const Borrowed* found = borrowed(arrival);
  return found == nullptr ? base::Bytes{} : found->memory;
}

void Link::reply(std::uint64_t arrival, const Frame& frame, std::vector<Event>& finished) {
  Borrowed* found = borrowed(arrival);
  if (found != nullptr && out_.empty() && !trouble_ && leave_at_once(*found, {frame.label, frame.bytes.size()})) {
    finished.emplace_back(frame.token, false);
    return;
  }
  release(arrival);
  send(frame.label, frame.bytes, frame.token, finished);
}

bool Link::leave_at_once(Borrowed& arrival, const FrameHead& frame) {
  bool has_room = false;
  attempt([&] { has_room = writer_->push_reply(frame, arrival.at); });
  if (!has_room) return false;
  arrival.released = true;
  arrival.reply = ++replies_;
  add(counters_.sent, counted(frame.bytes));
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
    end = borrowed_.front().end;
  }
  if (end != 0) give_back(end);
}

void Link::give_back(std::uint64_t end) noexcept {
  reader_->give_back(end);
  changed(kRoom);
}

void Link::changed(std::uint64_t what) noexcept {
  std::atomic_ref sleeper(*region_->sleeper(other(side_)));
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the processor's order is the sleeper's business
  if ((sleeper.load(std::memory_order_relaxed) & what) == 0) return;
  if (sleeper.exchange(0) != 0) ring(channel_);
}

void Link::lie_down() noexcept {
  if (!open_) return;
  const bool replied = std::ranges::any_of(borrowed_, [](const Borrowed& lent) { return lent.reply != 0; });
  lying_for_ = (in_.empty() ? 0 : kFrames) | (out_.empty() && !replied ? 0 : kRoom);
  std::atomic_ref(*region_->sleeper(side_)).store(lying_for_);
}

void Link::get_up() noexcept {
  if (!open_ || lying_for_ == 0) return;
  const bool rung = std::atomic_ref(*region_->sleeper(side_)).exchange(0) == 0;
  lying_for_ = 0;
  // A closed connection is no trouble by itself: what the peer wrote before is still here, and control knows its end.
  std::size_t rings = 0;
  if (rung) static_cast<void>(hear(channel_, rings));
}

}  // namespace syncopate::transport::shm
