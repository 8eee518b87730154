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

inline constexpr std::size_t kMostHeadBytes = 64;
inline constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20;
/// Of a received message: its first byte lies at a multiple of this.
inline constexpr std::size_t kMessageAlignment = 64;

/// How a stream ended. PeerLost: the other end died, fell silent, was cut off, or left without a word. RemoteFailure:
/// it closed the stream with an error. Corrupt: it sent what is no message. Another kind: `received` threw it.
struct Ending {
  std::optional<ErrorKind> failure;  ///< empty: one of the two ends closed the stream in order
  std::string reason;                ///< names the other end, its address and what happened
};

/// What happens on a stream. Called on gRPC's threads, of which a process has few, one call at a time for each stream:
/// no call blocks or takes long, makes, destroys or dials a stream or a listener. `send` and `close` are welcome.
struct StreamEvents {
  /// A whole message, head and body in one span. The next one is read after the call has returned, so one message at
  /// most is unread here, and the other end writes no further than the window of gRPC's flow control. What it throws
  /// closes the stream with its text. May be called before `dial` has returned.
  std::function<void(Payload message)> received;
  /// The last call, exactly once. It does not throw.
  std::function<void(const Ending& ending)> ended;
};

/// One end. All functions may be called from any thread. A message arrives whole and once, or the stream ends.
class Stream {
 public:
  /// `end`.
  virtual ~Stream() = default;
  /// Cancels what is under way and returns when no callback runs or will come. A stream that was closed before has the
  /// time of `silence` to send what it holds; another is cut off, and the other end sees PeerLost. Not to be called
  /// in a callback, and neither is a destructor, unless another thread has ended the stream: so who shares one with its
  /// callbacks ends it, and the last of them may drop it. In a forked child it does nothing.
  virtual void end() = 0;

  /// Queues a message and does not block. Lower numbers leave first, equal ones in the order of the calls; a message
  /// whose first byte has left is not overtaken. `head` is copied. `body` is not: its owner is released, on any thread,
  /// when the bytes have been written or the connection is gone. Throws Misuse above the limits of sizes, and for a
  /// message without bytes. Does nothing after `close` and at the end of the stream: `ended` tells.
  virtual void send(std::uint64_t priority, base::ConstBytes head, Payload body) = 0;
  /// Ends the stream: in order after all that is queued, or, with an error, at once, and the other end gets its text
  /// (at most 1000 bytes of it). Messages of the other end are received until `ended`.
  virtual void close(std::string_view error) = 0;
  /// The name that the other end has proved.
  [[nodiscard]] virtual const std::string& peer() const noexcept = 0;
};

/// Certificates for TLS, as PEM files.
struct CertificateFiles {
  std::string authority;    ///< the job's own, which signed both ends' certificates
  std::string certificate;  ///< names this host's addresses
  std::string key;          ///< readable by its owner alone
};

/// What one end says of itself and demands of the other.
struct EndOptions {
  std::string identity;  ///< this end's name, 1 to 64 printable characters: "worker 3"
  std::string job;       ///< the same at both ends, at most 64 printable characters
  std::string secret;    ///< the same at both ends; may be empty where only this host can connect
  /// TLS on every TCP connection, where each end demands a certificate by `authority` of the other. Needed off
  /// loopback.
  std::optional<CertificateFiles> certificates = {};
  /// The other end is lost when nothing has come from it for so long; at least 100 ms. It counts while bytes wait in
  /// the sockets of both hosts too: not below twice the time that those (some MiB) take on the network at hand.
  base::Duration silence = std::chrono::seconds(2);
  base::Duration patience = std::chrono::seconds(10);  ///< bound of `dial`; at a listener, of what strangers begin
  Log log = {};
};

/// Reaches the listener at `address` ("10.0.0.5:7000", "[::1]:7000", "host:7000", "@name" on the same host), again
/// until it answers or `patience` is over. Blocks; not to be called in a callback. Throws Misuse for an address
/// or options that are not allowed, PeerLost where nobody answers in time, Unauthorized where one of the two does not
/// prove the secret, Mismatch for another version or job.
[[nodiscard]] std::unique_ptr<Stream> dial(const std::string& address, const EndOptions& options, StreamEvents events);

}  // namespace syncopate::server::rpc
