// Channels: the bytes of one connection, plain or under TLS, and length-prefixed messages over them, never blocking.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/socket/frame_reader.hpp"
#include "transport/socket/socket.hpp"
#include "transport/socket/tls.hpp"

namespace syncopate::transport::socket {

/// "the connection was closed", or the text of `moved.error`.
[[nodiscard]] std::string reason_of(const Moved& moved);

class Channel final {
 public:
  Channel() = default;
  explicit Channel(Descriptor socket) noexcept : socket_(std::move(socket)) {}

  /// Encrypts all bytes from here on; they may move after `negotiate` has returned `some`. Throws SystemFailure.
  void secure(const TlsKey& key, TlsRole role) { tls_ = std::make_unique<Tls>(number(), key, role); }
  /// Whether reads and writes share the state of TLS, so that only one thread may use the channel at a time.
  [[nodiscard]] bool encrypts() const noexcept { return tls_ != nullptr; }
  [[nodiscard]] Moved negotiate() noexcept { return tls_->negotiate(); }
  /// For a reader that reads until nothing is left: a read may take more bytes from the kernel than it returns; no
  /// poller announces them again.
  void read_ahead() noexcept {
    if (tls_) tls_->read_ahead();
  }
  /// Whether `negotiate` waits for room to write.
  [[nodiscard]] bool has_unsent() const noexcept { return tls_ && tls_->has_unsent(); }

  /// Whether bytes are here that no poller event announces. Without `read_ahead` they are a part of one TLS record.
  [[nodiscard]] bool has_unread() const noexcept { return tls_ && tls_->has_unread(); }

  /// Reads into / writes from the pieces in order, as far as possible without blocking. The caller repeats bytes that a
  /// write did not move, unchanged, at the front of the next write.
  [[nodiscard]] Moved read(std::span<iovec> pieces) noexcept;
  [[nodiscard]] Moved write(std::span<iovec> pieces) noexcept;
  [[nodiscard]] Moved read(std::span<std::byte> bytes) noexcept;
  [[nodiscard]] Moved write(std::span<const std::byte> bytes) noexcept;

  /// Wakes the poller when about `bytes` bytes are readable, or at the end of the connection. Reading is not affected.
  void announce_from(std::size_t bytes) noexcept;

  [[nodiscard]] const Descriptor& socket() const noexcept { return socket_; }
  [[nodiscard]] int number() const noexcept { return socket_.number(); }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  void close() noexcept {
    tls_.reset();
    const Descriptor gone = std::move(socket_);
  }

 private:
  Descriptor socket_;
  std::unique_ptr<Tls> tls_;  ///< destroyed first: it sends TLS's closing message over the socket
  std::size_t announced_from_ = 1;
};

/// Each message: u32 length, then that number of bytes.
class FramedChannel final {
 public:
  FramedChannel(Channel channel, std::size_t most_bytes);

  void queue(std::string_view message);
  /// Sends what the kernel takes. False: the connection is closed.
  [[nodiscard]] bool flush();
  /// Appends the available messages, about 64 KiB at most per call. False: the connection is closed. If an end arrives
  /// together with messages, the next read reports it, and the poller announces that read: the messages may explain the
  /// end. Throws Corrupt for a message longer than the limit.
  [[nodiscard]] bool read(std::vector<std::string>& messages);

  [[nodiscard]] bool idle() const noexcept { return out_.empty(); }  ///< nothing waits to be sent
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return out_.size(); }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] const Descriptor& socket() const noexcept { return channel_.socket(); }

 private:
  static constexpr std::size_t kPrefix = sizeof(std::uint32_t);
  void take_messages(std::vector<std::string>& messages);

  Channel channel_;
  std::size_t most_bytes_;
  std::string out_;
  std::string in_;  ///< the message that comes
  FrameReader<kPrefix> reader_;
  std::string reason_;
};

}  // namespace syncopate::transport::socket
