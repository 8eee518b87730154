// Stream: messages between one worker and one server that have proved the job's secret to each other.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "server/payload.hpp"
#include "syncopate/error.hpp"
#include "syncopate/log.hpp"

namespace syncopate::server::rpc {

inline constexpr std::size_t kMostHeadBytes = 72;
inline constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20;
/// Alignment of a received message's first byte.
inline constexpr std::size_t kMessageAlignment = 64;

/// How a stream ended. PeerLost: the other end died, fell silent, was cut off, or left without a farewell.
/// RemoteFailure: it closed the stream with an error. Corrupt: it sent bytes that are not a message. Another kind:
/// `received` threw it.
struct Ending {
  std::optional<ErrorKind> failure;  ///< empty: one of the two ends closed the stream in order
  std::string reason;                ///< names the other end, its address and what happened
};

/// Stream callbacks. They run on gRPC's few threads, one call at a time for each stream. They must not block, take
/// long, or make, destroy or dial a stream or a listener; they may call `send` and `close`.
struct StreamEvents {
  /// A whole message, head and body in one span. The next one is read after the call has returned, so at most one
  /// message is unread here, and the other end writes no further than the window of gRPC's flow control. An exception
  /// closes the stream with its text. May be called before `dial` has returned.
  std::function<void(Payload message)> received;
  /// The last call, exactly once. It does not throw.
  std::function<void(const Ending& ending)> ended;
};

/// One end of a stream. All functions may be called from any thread. A message arrives whole and once, or the stream
/// ends.
class Stream {
 public:
  /// Calls `end`.
  virtual ~Stream() = default;
  /// Cancels pending operations and returns when no callback runs or will come. A stream that was closed before has the
  /// time of `silence` to send its queue; another one is cut off, and the other end sees PeerLost. Neither this nor a
  /// destructor may be called in a callback, unless another thread has ended the stream: an owner that shares a stream
  /// with its callbacks ends it, and the last of them may then drop it. Does nothing in a forked child.
  virtual void end() = 0;

  /// Queues a message and does not block. Lower numbers leave first, equal ones in the order of the calls; a message
  /// whose first byte has left is not overtaken. `head` is copied. `body` is not: its owner is released, on any thread,
  /// when the bytes have been written or the connection is closed. Throws Misuse above the limits of sizes, and for a
  /// message without bytes. Does nothing after `close` and after the end of the stream, which `ended` reports.
  virtual void send(std::uint64_t priority, base::ConstBytes head, Payload body) = 0;
  /// Ends the stream: in order after all queued messages; or, with an error, at once, and the other end receives its
  /// text (at most 1000 bytes of it). Messages of the other end are received until `ended`.
  virtual void close(std::string_view error) = 0;
  /// The proven name of the other end.
  [[nodiscard]] virtual const std::string& peer() const noexcept = 0;
};

/// Certificates for TLS, as PEM files.
struct CertificateFiles {
  std::string authority;    ///< the job's own, which signed both ends' certificates
  std::string certificate;  ///< names this host's addresses
  std::string key;          ///< readable only by its owner
};

/// The identity of one end, and what it requires of the other.
struct EndOptions {
  std::string identity;  ///< this end's name, 1 to 64 printable characters: "worker 3"
  std::string job;       ///< equal at both ends, at most 64 printable characters
  std::string secret;    ///< equal at both ends; may be empty if only this host can connect
  /// TLS on every TCP connection, with a certificate by `authority` required of each end. Needed off loopback.
  std::optional<CertificateFiles> certificates = {};
  /// The other end is lost after this time without any bytes from it; at least 100 ms. Time in which bytes wait in the
  /// sockets of both hosts counts too: use at least twice the time that those (some MiB) take on the network.
  base::Duration silence = std::chrono::seconds(2);
  base::Duration patience = std::chrono::seconds(10);  ///< limit of `dial`; at a listener, of strangers' calls
  Log log = {};
};

/// Reaches the listener at `address` ("10.0.0.5:7000", "[::1]:7000", "host:7000", "@name" on the same host); retries
/// until it answers or `patience` is over. Blocks; must not be called in a callback. Throws Misuse for an address or
/// options that are not allowed, PeerLost if no listener answers in time, Unauthorized if one of the two ends does not
/// prove the secret, Mismatch for another version or job.
[[nodiscard]] std::unique_ptr<Stream> dial(const std::string& address, const EndOptions& options, StreamEvents events);

}  // namespace syncopate::server::rpc
