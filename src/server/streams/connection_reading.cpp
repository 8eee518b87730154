// Connection, the receiving half: frames are assembled, checked and passed on.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/streams/connection.hpp"

namespace syncopate::server::streams {

using transport::socket::Moved;

namespace {

/// Bytes that one connection reads before others have their turn.
constexpr std::size_t kBytesPerTurn = std::size_t{4} << 20;
/// The loop is woken when at least this much of an incomplete message has arrived.
constexpr std::size_t kMostUnannounced = std::size_t{128} << 10;

}  // namespace

Moved Connection::read_once() {
  const auto read = [&]() SYNCOPATE_UNCHECKED { return channel_.read(reader_.pieces()); };
  if (!is_encrypted_) return read();
  const base::Lock lock(mutex_);
  return read();
}

std::size_t Connection::pull() {
  const auto has_unread = [this]() SYNCOPATE_UNCHECKED { return channel_.has_unread(); };
  std::size_t bytes = 0;
  while (!is_over()) {
    const Moved moved = read_once();
    if (moved.outcome == Moved::Outcome::closed) {
      lose(moved);
      return bytes;
    }
    if (moved.outcome == Moved::Outcome::nothing_now) break;
    bytes += moved.bytes;
    has_read_ = true;
    try {
      reader_.filled(moved.bytes);
      take_frames();
    } catch (const Error& error) {
      fail(error.kind(), error.what());
    } catch (const std::exception& error) {  // no memory for the message
      fail(ErrorKind::system_failure, error.what());
    }
    if (receiving_ == Receiving::closed) return bytes;
    if (!moved.more || (bytes >= kBytesPerTurn && !has_unread())) break;
  }
  announce();
  return bytes;
}

/// After a failure the bytes of the other end are dropped: only its end is awaited.
void Connection::take_frames() {
  using Part = decltype(reader_)::Part;
  while (!has_reported()) {
    const Part part = reader_.next();
    if (part == Part::none) return;
    if (part == Part::header)
      start_frame();
    else
      finish_frame();
  }
}

void Connection::start_frame() {
  frame_ = decode(reader_.header());
  const bool is_first = receiving_ == Receiving::settings;
  if ((frame_.kind == FrameKind::settings) != is_first)
    throw Corrupt(is_first ? "did not begin with its settings" : "sent a second settings frame");
  payload_ = shared_.buffers->take(frame_.bytes);
  reader_.place({payload_.get(), frame_.bytes});
}

void Connection::finish_frame() {
  Payload payload{payload_, {payload_.get(), frame_.bytes}};
  switch (frame_.kind) {
    case FrameKind::settings:
      read_settings();
      break;
    case FrameKind::message:
      payload_.reset();
      return deliver(std::move(payload));
    case FrameKind::heartbeat:
      break;
    case FrameKind::close:
      read_close();
      break;
  }
  payload_.reset();
}

void Connection::read_settings() {
  const auto silence = std::chrono::milliseconds(base::get<std::uint32_t>({payload_.get(), frame_.bytes}, 0));
  if (silence < std::chrono::milliseconds(100)) throw Corrupt("sent a silence of less than 100 ms");
  go_on(Receiving::open);
  silence_ = std::min<base::Duration>(silence, shared_.silence);
  beat_ = base::Beat(silence_, beat_.last_run());
}

void Connection::read_close() {
  const std::string error = readable({payload_.get(), frame_.bytes});
  bool is_mine = false;
  {
    const base::Lock lock(mutex_);
    is_mine = close_text_.has_value();
    begin_close("");
  }
  if (!error.empty())
    return report(Receiving::closed,
                  {ErrorKind::remote_failure, fmt::format("{} closed the stream: {}", other_end(), error)});
  report(Receiving::closed, {{},
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
  const std::size_t rest = reader_.is_in_body() && !has_reported() ? reader_.missing() : 1;
  const auto announce = [&]() SYNCOPATE_UNCHECKED { channel_.announce_from(std::min(rest, kMostUnannounced)); };
  announce();
}

}  // namespace syncopate::server::streams
