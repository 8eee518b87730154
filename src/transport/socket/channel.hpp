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

  /// From here on all bytes are encrypted; they may move once `settle` has come to `some`. Throws SystemFailure.
  void secure(const TlsKey& key, TlsRole role) { tls_ = std::make_unique<Tls>(number(), key, role); }
  [[nodiscard]] Moved settle() noexcept { return tls_->settle(); }
  /// For a reader that reads until nothing is left: bytes behind those it asks for may be taken from the kernel, whose
  /// poller does not announce them again.
  void read_ahead() noexcept {
    if (tls_) tls_->read_ahead();
  }
  /// What keeps `settle` waiting is room to write.
  [[nodiscard]] bool has_unsent() const noexcept { return tls_ && tls_->has_unsent(); }

  /// Bytes are here that no event of a poller tells of. Without `read_ahead` they are a part of one record of TLS.
  [[nodiscard]] bool has_unread() const noexcept { return tls_ && tls_->has_unread(); }

  /// Reads into / writes from the pieces in order, as far as possible without blocking. Bytes that a write did not move
  /// come again, unchanged, at the front of the next one.
  [[nodiscard]] Moved read(std::span<iovec> pieces) noexcept;
  [[nodiscard]] Moved write(std::span<iovec> pieces) noexcept;
  [[nodiscard]] Moved read(std::span<std::byte> bytes) noexcept;
  [[nodiscard]] Moved write(std::span<const std::byte> bytes) noexcept;

  /// Arrivals are announced once `bytes` of them wait, or somewhat fewer, or the end of the connection. Reading is not
  /// affected.
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
  std::unique_ptr<Tls> tls_;  ///< goes first: it says farewell over the socket
  std::size_t announced_from_ = 1;
};

}  // namespace syncopate::transport::socket
