// Stream: messages between a process of a job and a parameter server, which have both proved the secret of the job.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "server/payload.hpp"
#include "syncopate/error.hpp"
#include "syncopate/group.hpp"
#include "syncopate/log.hpp"
#include "transport/connect/handshake.hpp"
#include "transport/connect/launch.hpp"

namespace syncopate::server::streams {

inline constexpr std::size_t kMostHeadBytes = 128;
inline constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20;
/// Alignment of a received message's first byte.
inline constexpr std::size_t kMessageAlignment = 64;

/// A process of the job: its role and index, which the handshake protects by the secret.
struct Identity {
  enum class Role : std::uint8_t { worker, server, observer };
  Role role = Role::observer;
  std::size_t index = 0;  ///< of the worker or server
  friend bool operator==(const Identity&, const Identity&) = default;
};
/// "worker 3", "server 0", "observer".
[[nodiscard]] std::string text_of(const Identity& identity);

/// How a stream ended. PeerLost: the other end died, fell silent, was cut off, or left without a close frame (the last
/// frame of an orderly end, frame.hpp). RemoteFailure: it closed the stream with an error. Corrupt: it sent bytes that
/// are not a message. Another kind: `received` threw it.
struct Ending {
  std::optional<ErrorKind> failure;  ///< empty: one of the two ends closed the stream in order
  std::string reason;                ///< names the other end, its address and what happened
};

/// Stream callbacks. They run on the thread of `Streams` or of a caller of `Streams::wait`, one call at a time. They
/// must not block or dial; they may call `send` and `close` of any stream.
struct StreamEvents {
  /// A whole message, head and body in one span. The next one is read after the call has returned, so that at most one
  /// message of a stream is unread here, and the other end writes no further than the kernels' buffers. An exception
  /// closes the stream with its text. May be called before `dial` has returned.
  std::function<void(Payload message)> received;
  /// The last call, exactly once, unless `Stream::end` was called before. It does not throw.
  std::function<void(const Ending& ending)> ended;
};

/// One end of a stream. All functions may be called from any thread. A message arrives whole and once, or the stream
/// ends.
class Stream {
 public:
  /// Calls `end`.
  virtual ~Stream() = default;
  /// Ends the callbacks: returns when none of this stream runs or will come. If `close` was called before, the stream
  /// continues to send its queue, for EndOptions::silence at most; otherwise it is cut off, and the other end gets
  /// PeerLost. Does nothing in a forked child.
  virtual void end() = 0;

  /// Queues a message and does not block. Lower numbers leave first, equal ones in the order of the calls; a message
  /// that has begun to leave is not overtaken. `head` is copied. `body` is not: its owner is released, on any thread,
  /// when the kernel has the bytes or the connection is closed. Throws Misuse above the limits of sizes, and for a
  /// message without bytes. Does nothing after `close` and after the end of the stream, which `ended` reports.
  virtual void send(std::uint64_t priority, base::ConstBytes head, Payload body) = 0;
  /// Ends the stream. With an empty text: in order, after all queued messages. With an error: at once, and the other
  /// end receives its text (at most 1000 bytes of it). Messages of the other end are received until `ended`.
  virtual void close(std::string_view error) = 0;
  /// The other end, as it has proved.
  [[nodiscard]] virtual const Identity& peer() const noexcept = 0;
};

/// One end of streams, and what it requires of the other.
struct EndOptions {
  Identity self;
  std::string job;     ///< equal at both ends
  std::string secret;  ///< equal at both ends; may be empty if only this host can connect
  /// Encrypts TCP connections by TLS 1.3 with keys made from the secret; automatic: those to public addresses.
  TlsChoice tls = TlsChoice::automatic;
  /// The other end is lost after this time without any bytes from it; at least 100 ms. Time in which bytes wait in the
  /// sockets of both hosts counts too: use at least twice the time that those (some MiB) take on the network.
  base::Duration silence = std::chrono::seconds(2);
  base::Duration patience = std::chrono::seconds(10);  ///< limit of a handshake at the end that accepts
  /// The loop polls for this long after a small message before it sleeps.
  base::Duration spin = transport::connect::kSpin;
  syncopate::Log log = {};
};

}  // namespace syncopate::server::streams
