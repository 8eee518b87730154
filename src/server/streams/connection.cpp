// Connection: opens a stream, keeps its time, and decides when and how it ends.
#include "server/streams/connection.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "base/fork.hpp"
#include "base/require.hpp"

namespace syncopate::server::streams {

namespace socket = transport::socket;
using socket::Moved;

namespace {

/// Bytes that the kernel holds before they leave the host, where no message overtakes them.
constexpr int kMostUnsent = 256 << 10;
constexpr std::size_t kTailBytes = std::size_t{16} << 10;

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
      reader_(kTailBytes),
      silence_(shared_.silence),
      beat_(silence_, socket().system().now()) {
  channel_.read_ahead();
  socket().system().set(socket().number(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, kMostUnsent);
}

std::string Connection::other_end() const { return fmt::format("{} ({})", text_of(peer_), address_); }

void Connection::open(bool is_offered, const Taker& taker) {
  {
    const base::Lock lock(mutex_);
    std::array<std::byte, sizeof(std::uint32_t)> silence{};
    base::put(silence, 0, static_cast<std::uint32_t>(shared_.silence / std::chrono::milliseconds(1)));
    push(FrameKind::settings, silence);
    if (is_offered) owner_ = Owner::offered;
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
    if (owner_ != Owner::gave_up) events_ = std::move(events);
    if (refusal.empty() && is_offered && owner_ == Owner::gave_up) refusal = "it was refused";
    if (!refusal.empty()) begin_close(refusal);
    if (owner_ == Owner::offered) owner_ = Owner::holds;
  }
  advance();
}

void Connection::go_on(Sending to) { sending_ = std::max(sending_, to); }

void Connection::go_on(Receiving to) { receiving_ = std::max(receiving_, to); }

/// Instead of the queue. Does nothing if this end has closed.
void Connection::begin_close(std::string_view text) {
  if (close_text_) return;
  drop_queue();
  close_text_ = text;
  go_on(Sending::closing);
}

std::size_t Connection::advance() {
  if (is_over()) return 0;
  const std::size_t bytes = pull();
  {
    const base::Lock lock(mutex_);
    write_next();
  }
  release_written();
  settle();
  return bytes;
}

std::uint32_t Connection::wanted() {
  const base::Lock lock(mutex_);
  return is_blocked_ && sending_ != Sending::broken ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

void Connection::tick(base::Time now) {
  if (is_over() || !beat_.is_due(now)) return;
  const base::Duration ran = beat_.run(now);
  pull();  // the kernel announces the bytes of an incomplete message late
  if (is_over()) return;
  quiet_ = std::exchange(has_read_, false) ? base::Duration(0) : quiet_ + ran;
  if (quiet_ >= silence_ && !has_reported()) {
    report(Receiving::failed, {ErrorKind::peer_lost, fmt::format("{} is lost: it was silent for {} ms", other_end(),
                                                                 silence_ / std::chrono::milliseconds(1))});
    return cut();
  }
  bool is_ending = has_reported();
  {
    const base::Lock lock(mutex_);
    is_ending = is_ending || owner_ == Owner::gave_up;
    if (!std::exchange(has_written_, false) && leaving_.empty() && sending_ < Sending::closed)
      push(FrameKind::heartbeat, {});
    write_next();
  }
  release_written();
  if (is_ending && (ending_ += ran) >= silence_) return cut();
  settle();
}

/// Over: this end's close frame has left and the other end's has come; or the program has given up an open stream.
void Connection::settle() {
  if (is_over()) return;
  bool is_done = false;
  {
    const base::Lock lock(mutex_);
    const bool is_broken = sending_ == Sending::broken;
    const bool is_written = is_broken || (sending_ == Sending::closed && leaving_.empty());
    is_done = (receiving_ == Receiving::closed && is_written) || (owner_ == Owner::gave_up && !close_text_) ||
              (has_reported() && is_broken);
  }
  if (is_done) cut();
}

void Connection::abandon(const Ending& ending) {
  bool is_closed = false;
  {
    const base::Lock lock(mutex_);
    is_closed = sending_ == Sending::closing || sending_ == Sending::closed;
    owner_ = Owner::gave_up;
  }
  if (is_closed && receiving_ != Receiving::closed) return;
  report(Receiving::failed, ending);
  cut();
}

void Connection::cut() {
  report(Receiving::failed, {ErrorKind::peer_lost, fmt::format("{} was cut off", other_end())});
  go_on(Receiving::over);
  Outbox waiting;  // destroyed without the lock
  std::deque<OutgoingFrame> leaving;
  const base::Lock lock(mutex_);
  go_on(Sending::broken);
  std::swap(waiting, waiting_);
  leaving.swap(leaving_);
}

void Connection::close_channel() {
  const base::Lock lock(mutex_);
  channel_.close();
}

/// An error of the other end or of this end's program: the other end receives the reason.
void Connection::fail(ErrorKind kind, const std::string& what) {
  {
    const base::Lock lock(mutex_);
    begin_close(what);
  }
  report(Receiving::failed, {kind, fmt::format("{}: {}", other_end(), what)});
}

/// The other end's bytes have ended without a close frame.
void Connection::lose(const Moved& moved) {
  report(Receiving::failed,
         {ErrorKind::peer_lost, fmt::format("the connection to {} broke: {}", other_end(), socket::reason_of(moved))});
  cut();
}

/// The first reason counts.
void Connection::report(Receiving as, Ending ending) {
  if (has_reported()) return;
  go_on(as);
  const base::Lock lock(callback_mutex_);
  const auto ended = std::exchange(events_, {}).ended;
  if (ended && !is_muted_) ended(ending);
  is_silent_ = true;
}

void Connection::end() {
  {
    const base::Lock lock(mutex_);
    if (std::exchange(owner_, Owner::gave_up) == Owner::offered) return;  // `open` sends the refusal
  }
  if (shared_.work->is_own_thread()) {
    is_muted_ = true;  // a callback, perhaps of this stream, may be running on this thread
  } else if (!is_silent_) {
    const base::Lock lock(callback_mutex_);
    events_ = {};
    is_silent_ = true;
  }
  shared_.work->add(shared_from_this());
}

}  // namespace syncopate::server::streams
