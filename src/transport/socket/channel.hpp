// Channel: the bytes of one connection. All connection input and output passes here, plain or under TLS.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "transport/socket/moved.hpp"
#include "transport/socket/socket.hpp"
#include "transport/socket/tls.hpp"

namespace syncopate::transport::socket {

class Channel final {
 public:
  Channel() = default;
  explicit Channel(Descriptor socket) noexcept : socket_(std::move(socket)) {}

  /// Encrypts all bytes from here on; they may move after `settle` has returned `some`. Throws SystemFailure.
  void secure(const TlsKey& key, TlsRole role) { tls_ = std::make_unique<Tls>(number(), key, role); }
  [[nodiscard]] Moved settle() noexcept { return tls_->settle(); }
  /// For a reader that reads until nothing is left: a read may take more bytes from the kernel than it returns; no
  /// poller announces them again.
  void read_ahead() noexcept {
    if (tls_) tls_->read_ahead();
  }
  /// Whether `settle` waits for room to write.
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

}  // namespace syncopate::transport::socket
