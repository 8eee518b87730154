// RawEnd: one end of a connection that passes the handshake, or not, and then sends arbitrary bytes.
#pragma once

#include <poll.h>

#include <string>
#include <utility>

#include "service/ends.hpp"
#include "transport/connect/handshake.hpp"

namespace syncopate::server::streams::test {

namespace connect = transport::connect;
namespace sockets = transport::socket;

inline void await(const sockets::Descriptor& socket, short events) {
  pollfd entry{.fd = socket.number(), .events = events, .revents = 0};
  EXPECT_GE(::poll(&entry, 1, 60'000), 0);
}

inline std::string frame_of(FrameKind kind, const std::string& payload) {
  const FrameHeader header = encode({kind, payload.size()});
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()) + payload;
}
inline std::string settings(std::uint32_t silence_ms = 20'000) {
  return frame_of(FrameKind::settings, std::string(reinterpret_cast<const char*>(&silence_ms), sizeof silence_ms));
}

/// Each function returns when its work is done: the state of the end is certain.
class RawEnd final {
 public:
  /// Calls as `hello`, and proves with `secret`.
  static RawEnd calling(const std::string& address, const connect::Hello& hello, const std::string& secret) {
    const auto to = sockets::Address::parse(address);
    return RawEnd(connect::Handshake::call(sockets::Channel(sockets::start_connection(to, {})), hello, secret));
  }
  /// Accepts one call.
  static RawEnd answering(const sockets::Descriptor& listener, const connect::Hello& hello, const std::string& secret) {
    await(listener, POLLIN);
    return RawEnd(connect::Handshake::answer(sockets::Channel(sockets::accept_from(listener)), hello, secret));
  }
  /// The worker of that index in the job of `end_named`.
  static RawEnd member(const std::string& address, int worker = 0) {
    RawEnd end = calling(
        address, {.version = {}, .purpose = connect::Purpose::worker, .group = number_of_job("a job"), .from = worker},
        end_named("worker 0").secret);
    EXPECT_TRUE(end.is_in()) << end.reason();
    return end;
  }

  [[nodiscard]] bool is_in() const { return state_ == connect::Handshake::State::done; }
  [[nodiscard]] connect::Handshake::Cause cause() const { return cause_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// Writes until the other end takes no more for 200 ms, or closes. Returns the number of bytes.
  std::size_t write(std::string_view bytes) {
    std::size_t written = 0;
    while (written < bytes.size()) {
      const auto moved = channel_.write(std::as_bytes(std::span(bytes.substr(written))));
      written += moved.bytes;
      if (moved.outcome == sockets::Moved::Outcome::closed) break;
      pollfd entry{.fd = channel_.number(), .events = POLLOUT, .revents = 0};
      if (moved.bytes == 0 && ::poll(&entry, 1, 200) == 0) break;
    }
    return written;
  }
  /// All bytes up to the other end's end.
  [[nodiscard]] std::string read_all() {
    std::string all;
    std::array<std::byte, 4096> piece;
    for (;;) {
      const auto moved = channel_.read(std::span<std::byte>(piece));
      if (moved.outcome == sockets::Moved::Outcome::closed) return all;
      all.append(reinterpret_cast<const char*>(piece.data()), moved.bytes);
      if (moved.bytes == 0) await(channel_.socket(), POLLIN);
    }
  }

 private:
  explicit RawEnd(connect::Handshake handshake) {
    using State = connect::Handshake::State;
    for (state_ = handshake.advance(); state_ == State::reading || state_ == State::writing;
         state_ = handshake.advance())
      await(handshake.channel().socket(), state_ == State::reading ? POLLIN : POLLOUT);
    cause_ = handshake.cause();
    reason_ = handshake.reason();
    channel_ = handshake.take();
  }

  connect::Handshake::State state_{};
  connect::Handshake::Cause cause_{};
  std::string reason_;
  sockets::Channel channel_;
};

}  // namespace syncopate::server::streams::test
