// Connection: moves frames, and decides when and how a stream ends.
#include "server/streams/connection.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fork.hpp"
#include "base/require.hpp"

namespace syncopate::server::streams {

namespace socket = transport::socket;
using socket::Moved;

namespace {

/// Bytes that have begun to leave: what is behind them can still be overtaken.
constexpr std::size_t kMostLeaving = std::size_t{256} << 10;
/// Bytes that the kernel holds before they leave the host, for the same reason.
constexpr int kMostUnsent = 256 << 10;
constexpr std::size_t kPieces = 32;
/// Larger messages are written by the loop, so that `send` does not take the time of a copy.
constexpr std::size_t kDirectBytes = std::size_t{16} << 10;
constexpr std::size_t kTailBytes = std::size_t{16} << 10;
/// Bytes that one connection reads before others have their turn.
constexpr std::size_t kBytesPerTurn = std::size_t{4} << 20;
/// The loop is woken when at least this much of an incomplete message has arrived.
constexpr std::size_t kMostUnannounced = std::size_t{128} << 10;

class Handle final : public Stream {
 public:
  explicit Handle(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~Handle() override { Handle::end(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void end() override {
    if (!process_.is_inherited()) connection_->end();
  }
  void send(std::uint64_t priority, base::ConstBytes head, Payload body) override {
    process_.require("a stream to a parameter server");
    const std::size_t bytes = head.size() + body.bytes.size();
    base::require(head.size() <= kMostHeadBytes && body.bytes.size() <= kMostBodyBytes,
                  "a message has a head of {} bytes and a body of {}; allowed: {} and {}", head.size(),
                  body.bytes.size(), kMostHeadBytes, kMostBodyBytes);
    base::require(bytes > 0, "a message has no bytes; allowed: 1 byte or more");
    OutgoingFrame frame{.front = {}, .front_bytes = kFrameHeaderBytes + head.size(), .body = std::move(body)};
    std::ranges::copy(encode({FrameKind::message, bytes}), frame.front.begin());
    std::ranges::copy(head, frame.front.begin() + kFrameHeaderBytes);
    connection_->send(priority, std::move(frame));
  }
  void close(std::string_view error) override {
    process_.require("a stream to a parameter server");
    connection_->close(error);
  }
  [[nodiscard]] const Identity& peer() const noexcept override { return connection_->peer(); }

 private:
  const std::shared_ptr<Connection> connection_;
  base::OwnProcess process_;
};

iovec piece_of(base::ConstBytes bytes) noexcept { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

/// The rest of a frame, of which `sent` bytes have left.
void append_rest(std::vector<iovec>& pieces, const OutgoingFrame& frame, std::size_t sent) {
  const base::ConstBytes front = base::ConstBytes(frame.front).first(frame.front_bytes);
  if (sent < front.size()) pieces.push_back(piece_of(front.subspan(sent)));
  const std::size_t of_body = sent > front.size() ? sent - front.size() : 0;
  if (of_body < frame.body.bytes.size()) pieces.push_back(piece_of(frame.body.bytes.subspan(of_body)));
}

}  // namespace

std::string text_of(const Identity& identity) {
  switch (identity.role) {
    case Identity::Role::worker:
      return fmt::format("worker {}", identity.index);
    case Identity::Role::server:
      return fmt::format("server {}", identity.index);
    case Identity::Role::observer:
      break;
  }
  return "observer";
}

Connection::Connection(socket::Channel channel, Identity peer, std::string address, Shared shared)
    : peer_(peer),
      address_(std::move(address)),
      shared_(std::move(shared)),
      channel_(std::move(channel)),
      is_encrypted_(channel_.encrypts()),
      tail_(kTailBytes),
      tick_(shared_.silence / kTicks) {
  channel_.read_ahead();
  socket().system().set(socket().number(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, kMostUnsent);
}

std::string Connection::other_end() const { return fmt::format("{} ({})", text_of(peer_), address_); }

// --- sending ---------------------------------------------------------------------------------------------------------

void Connection::send(std::uint64_t priority, OutgoingFrame frame) {
  bool is_left = false;
  {
    const base::Lock lock(mutex_);
    if (farewell_ || is_sealed_) return;
    const bool is_first = leaving_.empty() && waiting_.empty();
    const bool is_small = frame.bytes() <= kDirectBytes;
    waiting_.push(priority, std::move(frame));
    if (is_first && is_small && !is_blocked_ && !is_offered_) write_next();
    is_left = is_first && (!leaving_.empty() || !waiting_.empty() || is_sealed_);
  }
  release_written();
  if (is_left) shared_.work->add(shared_from_this());
}

void Connection::close(std::string_view error) {
  {
    const base::Lock lock(mutex_);
    if (farewell_ || is_sealed_) return;
    if (!error.empty()) drop_queue();
    farewell_ = error;
  }
  shared_.work->add(shared_from_this());
}

/// A frame that has begun to leave stays, because its rest must follow; so does the greeting.
void Connection::drop_queue() {
  waiting_.clear();
  const auto is_greeting = [](const OutgoingFrame& frame) {
    return frame.front[kFrameKindAt] == static_cast<std::byte>(FrameKind::greeting);
  };
  const bool keeps_first = !leaving_.empty() && (front_sent_ > 0 || is_greeting(leaving_.front()));
  while (leaving_.size() > (keeps_first ? 1 : 0)) {
    leaving_bytes_ -= leaving_.back().bytes();
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
  if (!waiting_.empty() || !farewell_ || is_farewell_queued_) return;
  is_farewell_queued_ = true;
  push(FrameKind::farewell, std::as_bytes(std::span(*farewell_).first(std::min(farewell_->size(), kMostTextBytes))));
}

void Connection::write_next() {
  is_blocked_ = false;
  std::vector<iovec> pieces;
  while (!is_sealed_ && !is_blocked_) {
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
      is_sealed_ = true;  // the reason is found by reading, which comes to the other end's farewell first
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

// --- the loop --------------------------------------------------------------------------------------------------------

void Connection::open(base::Time now, bool is_offered, const Taker& taker) {
  next_tick_ = now + tick_;
  {
    const base::Lock lock(mutex_);
    std::array<std::byte, sizeof(std::uint32_t)> silence{};
    base::put(silence, 0, static_cast<std::uint32_t>(shared_.silence / std::chrono::milliseconds(1)));
    push(FrameKind::greeting, silence);
    is_offered_ = is_offered;
  }
  StreamEvents events;
  std::string refusal;
  try {
    events = taker(std::make_unique<Handle>(shared_from_this()));
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  {
    // The program may end the stream before `taker` has returned: then no callback may come.
    const base::Lock callbacks(callback_mutex_);
    const base::Lock lock(mutex_);
    if (!is_given_up_) events_ = std::move(events);
    if (refusal.empty() && is_offered_ && is_given_up_) refusal = "it was refused";
    if (!refusal.empty() && !farewell_) queue_farewell(refusal);
    is_offered_ = false;
  }
  advance();
}

void Connection::queue_farewell(std::string_view text) {
  drop_queue();
  farewell_ = text;
}

void Connection::advance() {
  if (is_over_) return;
  pull();
  {
    const base::Lock lock(mutex_);
    write_next();
  }
  release_written();
  settle();
}

std::uint32_t Connection::wanted() {
  const base::Lock lock(mutex_);
  return is_blocked_ && !is_sealed_ ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

void Connection::tick(base::Time now) {
  if (now < next_tick_ || is_over_) return;
  next_tick_ = now + tick_;
  pull();  // the kernel announces the bytes of an incomplete message late
  if (is_over_) return;
  quiet_ticks_ = std::exchange(has_read_, false) ? 0 : quiet_ticks_ + 1;
  if (quiet_ticks_ >= kTicks && !has_ended_) {
    report({ErrorKind::peer_lost, fmt::format("{} is lost: it was silent for {} ms", other_end(),
                                              kTicks * tick_ / std::chrono::milliseconds(1))});
    return cut();
  }
  bool is_ending = has_ended_;
  {
    const base::Lock lock(mutex_);
    is_ending = is_ending || is_given_up_;
    if (!std::exchange(has_written_, false) && leaving_.empty() && !is_farewell_queued_) push(FrameKind::heartbeat, {});
    write_next();
  }
  release_written();
  if (is_ending && ++ending_ticks_ >= kTicks) return cut();
  settle();
}

/// Over: this end's farewell has left and the other end's has come; or the program has given up an open stream.
void Connection::settle() {
  if (is_over_) return;
  bool is_done = false;
  {
    const base::Lock lock(mutex_);
    const bool is_written = is_sealed_ || (is_farewell_queued_ && leaving_.empty());
    is_done = (has_farewell_ && is_written) || (is_given_up_ && !farewell_) || (has_ended_ && is_sealed_);
  }
  if (is_done) cut();
}

void Connection::abandon(const Ending& ending) {
  bool is_closed = false;
  {
    const base::Lock lock(mutex_);
    is_closed = farewell_.has_value() && !is_sealed_;
    is_given_up_ = true;
  }
  if (is_closed && !has_farewell_) return;
  report(ending);
  cut();
}

void Connection::cut() {
  report({ErrorKind::peer_lost, fmt::format("{} was cut off", other_end())});
  is_over_ = true;
  Outbox waiting;  // destroyed without the lock
  std::deque<OutgoingFrame> leaving;
  const base::Lock lock(mutex_);
  is_sealed_ = true;
  std::swap(waiting, waiting_);
  leaving.swap(leaving_);
}

void Connection::close_channel() {
  const base::Lock lock(mutex_);
  channel_.close();
}

// --- reading ---------------------------------------------------------------------------------------------------------

Moved Connection::read_once() {
  std::array<iovec, 2> pieces;
  const std::size_t rest = payload_ ? frame_.bytes - payload_have_ : 0;
  pieces[0] = {payload_ ? payload_.get() + payload_have_ : nullptr, rest};
  pieces[1] = {tail_.data(), tail_.size()};
  const std::span<iovec> all = rest > 0 ? std::span(pieces) : std::span(pieces).last(1);
  const auto read = [&]() SYNCOPATE_UNCHECKED { return channel_.read(all); };
  if (!is_encrypted_) return read();
  const base::Lock lock(mutex_);
  return read();
}

void Connection::pull() {
  const auto has_unread = [this]() SYNCOPATE_UNCHECKED { return channel_.has_unread(); };
  std::size_t bytes = 0;
  while (!is_over_) {
    const Moved moved = read_once();
    if (moved.outcome == Moved::Outcome::closed) return lose(moved);
    if (moved.outcome == Moved::Outcome::nothing_now) break;
    bytes += moved.bytes;
    has_read_ = true;
    try {
      absorb(moved.bytes);
    } catch (const Error& error) {
      fail(error.kind(), error.what());
    } catch (const std::exception& error) {  // no memory for the message
      fail(ErrorKind::system_failure, error.what());
    }
    if (has_farewell_) return;
    if (!moved.more || (bytes >= kBytesPerTurn && !has_unread())) break;
  }
  announce();
}

/// After a failure the bytes of the other end are dropped: only its end is awaited.
void Connection::absorb(std::size_t bytes) {
  if (has_ended_) {
    payload_.reset();
    return;
  }
  if (payload_) {
    const std::size_t used = std::min(bytes, frame_.bytes - payload_have_);
    payload_have_ += used;
    bytes -= used;
    tail_begin_ = 0;
    tail_end_ = bytes;
    if (payload_have_ == frame_.bytes) finish_frame();
  } else {
    tail_begin_ = 0;
    tail_end_ = bytes;
  }
  take_from_tail();
}

void Connection::take_from_tail() {
  while (tail_begin_ < tail_end_ && !has_ended_) {
    const std::size_t left = tail_end_ - tail_begin_;
    if (!payload_) {
      const std::size_t used = std::min(left, kFrameHeaderBytes - header_have_);
      std::memcpy(header_.data() + header_have_, tail_.data() + tail_begin_, used);
      header_have_ += used;
      tail_begin_ += used;
      if (header_have_ < kFrameHeaderBytes) return;
      start_frame();
    } else {
      const std::size_t used = std::min(left, frame_.bytes - payload_have_);
      std::memcpy(payload_.get() + payload_have_, tail_.data() + tail_begin_, used);
      payload_have_ += used;
      tail_begin_ += used;
    }
    if (payload_ && payload_have_ == frame_.bytes) finish_frame();
  }
}

void Connection::start_frame() {
  frame_ = decode(header_);
  if ((frame_.kind == FrameKind::greeting) == has_greeting_)
    throw Corrupt(has_greeting_ ? "sent a second greeting" : "did not begin with a greeting");
  header_have_ = 0;
  payload_have_ = 0;
  payload_ = shared_.buffers->take(std::max<std::size_t>(frame_.bytes, 1));
}

void Connection::finish_frame() {
  Payload payload{payload_, {payload_.get(), frame_.bytes}};
  switch (frame_.kind) {
    case FrameKind::greeting:
      take_greeting();
      break;
    case FrameKind::message:
      payload_.reset();
      return deliver(std::move(payload));
    case FrameKind::heartbeat:
      break;
    case FrameKind::farewell:
      take_farewell();
      break;
  }
  payload_.reset();
}

void Connection::take_greeting() {
  const auto silence = std::chrono::milliseconds(base::get<std::uint32_t>({payload_.get(), frame_.bytes}, 0));
  if (silence < std::chrono::milliseconds(100)) throw Corrupt("sent a silence of less than 100 ms");
  has_greeting_ = true;
  tick_ = std::min<base::Duration>(silence, shared_.silence) / kTicks;
  next_tick_ = std::min(next_tick_, next_tick_ - shared_.silence / kTicks + tick_);
}

void Connection::take_farewell() {
  const std::string error = readable({payload_.get(), frame_.bytes});
  bool is_mine = false;
  {
    const base::Lock lock(mutex_);
    is_mine = farewell_.has_value();
    if (!is_mine) queue_farewell("");
  }
  has_farewell_ = true;
  if (!error.empty())
    return report({ErrorKind::remote_failure, fmt::format("{} closed the stream: {}", other_end(), error)});
  report({{},
          is_mine ? fmt::format("this end closed the stream with {}", other_end())
                  : fmt::format("{} closed the stream", other_end())});
}

void Connection::deliver(Payload message) {
  try {
    const base::Lock lock(callback_mutex_);
    if (!is_muted_ && events_.received) events_.received(std::move(message));
  } catch (const Error& error) {
    fail(error.kind(), error.what());
  } catch (const std::exception& error) {
    fail(ErrorKind::system_failure, error.what());
  }
}

/// A whole message, or a part of a large one, wakes the loop once.
void Connection::announce() {
  const std::size_t rest = payload_ && !has_ended_ ? frame_.bytes - payload_have_ : 1;
  const auto announce = [&]() SYNCOPATE_UNCHECKED { channel_.announce_from(std::min(rest, kMostUnannounced)); };
  announce();
}

// --- ending ----------------------------------------------------------------------------------------------------------

/// An error of the other end or of this end's program: the other end receives the reason.
void Connection::fail(ErrorKind kind, const std::string& what) {
  {
    const base::Lock lock(mutex_);
    if (!farewell_) queue_farewell(what);
  }
  report({kind, fmt::format("{}: {}", other_end(), what)});
}

/// The other end's bytes have ended without a farewell.
void Connection::lose(const Moved& moved) {
  report({ErrorKind::peer_lost, fmt::format("the connection to {} broke: {}", other_end(), socket::reason_of(moved))});
  cut();
}

void Connection::report(Ending ending) {
  if (std::exchange(has_ended_, true)) return;
  const base::Lock lock(callback_mutex_);
  const auto ended = std::exchange(events_, {}).ended;
  if (ended && !is_muted_) ended(ending);
}

void Connection::end() {
  {
    const base::Lock lock(mutex_);
    is_given_up_ = true;
    if (is_offered_) return;  // `open` sends the refusal
  }
  if (shared_.work->is_own_thread()) {
    is_muted_ = true;  // a callback, perhaps of this stream, may be running on this thread
  } else {
    const base::Lock lock(callback_mutex_);
    events_ = {};
  }
  shared_.work->add(shared_from_this());
}

}  // namespace syncopate::server::streams
