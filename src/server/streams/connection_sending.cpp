// Connection, the sending half: the queue, frames that have begun to leave, and what the kernel takes of them.
#include <algorithm>
#include <utility>

#include "server/streams/connection.hpp"

namespace syncopate::server::streams {

using transport::socket::Moved, transport::socket::piece_of;

namespace {

/// Bytes that have begun to leave: what is behind them can still be overtaken.
constexpr std::size_t kMostLeaving = std::size_t{256} << 10;
constexpr std::size_t kPieces = 32;
/// Larger messages are written by the loop, so that `send` does not take the time of a copy.
constexpr std::size_t kDirectBytes = std::size_t{16} << 10;

/// The rest of a frame, of which `sent` bytes have left.
void append_rest(std::vector<iovec>& pieces, const OutgoingFrame& frame, std::size_t sent) {
  const base::ConstBytes front = base::ConstBytes(frame.front).first(frame.front_bytes);
  if (sent < front.size()) pieces.push_back(piece_of(front.subspan(sent)));
  const std::size_t of_body = sent > front.size() ? sent - front.size() : 0;
  if (of_body < frame.body.bytes.size()) pieces.push_back(piece_of(frame.body.bytes.subspan(of_body)));
}

}  // namespace

void Connection::send(std::uint64_t priority, OutgoingFrame frame) {
  bool is_left = false;
  {
    const base::Lock lock(mutex_);
    if (sending_ != Sending::open) return;
    const bool is_first = leaving_.empty() && waiting_.empty();
    const bool is_small = frame.bytes() <= kDirectBytes;
    waiting_.push(priority, std::move(frame));
    if (is_first && is_small && !is_blocked_ && owner_ != Owner::offered) write_next();
    is_left = is_first && (!leaving_.empty() || !waiting_.empty() || sending_ == Sending::broken);
  }
  release_written();
  if (is_left) shared_.work->add(shared_from_this());
}

void Connection::close(std::string_view error) {
  {
    const base::Lock lock(mutex_);
    if (sending_ != Sending::open) return;
    if (!error.empty()) drop_queue();
    close_text_ = error;
    go_on(Sending::closing);
  }
  shared_.work->add(shared_from_this());
}

/// A frame that has begun to leave stays, because its rest must follow; so do the settings.
void Connection::drop_queue() {
  while (!waiting_.empty()) written_.push_back(waiting_.pop().body);
  const auto has_settings = [](const OutgoingFrame& frame) {
    return frame.front[kFrameKindAt] == static_cast<std::byte>(FrameKind::settings);
  };
  const bool keeps_first = !leaving_.empty() && (front_sent_ > 0 || has_settings(leaving_.front()));
  while (leaving_.size() > (keeps_first ? 1 : 0)) {
    leaving_bytes_ -= leaving_.back().bytes();
    written_.push_back(std::move(leaving_.back().body));
    leaving_.pop_back();
  }
}

void Connection::push(FrameKind kind, base::ConstBytes payload) {
  OutgoingFrame frame{.front = {}, .front_bytes = kFrameHeaderBytes, .body = {}};
  std::ranges::copy(encode({kind, payload.size()}), frame.front.begin());
  if (!payload.empty()) frame.body = payload_of({reinterpret_cast<const char*>(payload.data()), payload.size()});
  leaving_bytes_ += frame.bytes();
  leaving_.push_back(std::move(frame));
}

void Connection::refill() {
  while (!waiting_.empty() && leaving_.size() < kPieces / 2 && leaving_bytes_ < kMostLeaving) {
    leaving_.push_back(waiting_.pop());
    leaving_bytes_ += leaving_.back().bytes();
  }
  if (!waiting_.empty() || sending_ != Sending::closing) return;
  go_on(Sending::closed);
  push(FrameKind::close, std::as_bytes(std::span(*close_text_).first(std::min(close_text_->size(), kMostTextBytes))));
}

void Connection::write_next() {
  is_blocked_ = false;
  std::vector<iovec> pieces;
  while (sending_ != Sending::broken && !is_blocked_) {
    refill();
    if (leaving_.empty()) return;
    pieces.clear();
    std::size_t sent = front_sent_;
    for (const OutgoingFrame& frame : leaving_) {
      append_rest(pieces, frame, std::exchange(sent, 0));
      if (pieces.size() + 2 > kPieces) break;
    }
    const Moved moved = channel_.write(pieces);
    if (moved.outcome == Moved::Outcome::closed) {
      go_on(Sending::broken);  // the reason is found by reading, which comes to the other end's close frame first
      return;
    }
    wrote(moved.bytes);
    is_blocked_ = !moved.more;
  }
}

void Connection::wrote(std::size_t bytes) {
  if (bytes > 0) has_written_ = true;
  front_sent_ += bytes;
  while (!leaving_.empty() && front_sent_ >= leaving_.front().bytes()) {
    front_sent_ -= leaving_.front().bytes();
    leaving_bytes_ -= leaving_.front().bytes();
    if (leaving_.front().body.owner) written_.push_back(std::move(leaving_.front().body));
    leaving_.pop_front();
  }
}

/// An owner may be anything: its destructor must not run under the lock.
void Connection::release_written() {
  std::vector<Payload> written;
  const base::Lock lock(mutex_);
  written.swap(written_);
}

}  // namespace syncopate::server::streams
