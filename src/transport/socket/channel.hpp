// Channel: the bytes of one connection. All connection input and output passes here: the place where TLS will wrap.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>

#include "transport/socket/socket.hpp"

namespace syncopate::transport::socket {

/// What one attempt to move bytes came to.
struct Moved {
  enum class Outcome : unsigned char { some, nothing_now, closed };
  Outcome outcome = Outcome::nothing_now;
  std::size_t bytes = 0;
  int error = 0;  ///< errno when closed by an error, 0 when the peer closed in order
};

class Channel final {
 public:
  Channel() = default;
  explicit Channel(Descriptor socket) noexcept : socket_(std::move(socket)) {}

  /// Reads into / writes from the pieces in order, as far as possible without blocking.
  [[nodiscard]] Moved read(std::span<iovec> pieces) noexcept;
  [[nodiscard]] Moved write(std::span<iovec> pieces) noexcept;
  [[nodiscard]] Moved read(std::span<std::byte> bytes) noexcept;
  [[nodiscard]] Moved write(std::span<const std::byte> bytes) noexcept;

  /// Arrivals are announced once `bytes` of them wait, or the end of the connection. Reading is not affected.
  void announce_from(std::size_t bytes) noexcept;

  [[nodiscard]] const Descriptor& socket() const noexcept { return socket_; }
  [[nodiscard]] int number() const noexcept { return socket_.number(); }
  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  void close() noexcept { const Descriptor gone = std::move(socket_); }

 private:
  Descriptor socket_;
  std::size_t announced_from_ = 1;
};

/// "connection closed", or the system's words for `moved.error`.
[[nodiscard]] std::string reason_of(const Moved& moved);

}  // namespace syncopate::transport::socket
