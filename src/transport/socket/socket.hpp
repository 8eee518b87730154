// Sockets and descriptors: how the transport opens, tunes and closes them; every socket is non-blocking.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/fork.hpp"
#include "transport/socket/address.hpp"
#include "transport/socket/system.hpp"

namespace syncopate::transport::socket {

/// Owns a file descriptor of its system. A forked child closes its copy at once: the other end of a connection sees its
/// end when this process ends, not when its last child does.
class Descriptor final {
 public:
  Descriptor() = default;
  explicit Descriptor(int number, System& system = kernel());
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), system_(other.system_), process_(other.process_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(system_, other.system_);
    std::swap(process_, other.process_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] System& system() const noexcept { return *system_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
  System* system_ = &kernel();
  base::OwnProcess process_;
};

/// The system's text for an errno; if descriptors ran out, also which limit to raise.
[[nodiscard]] std::string reason_of(int error);
/// A listening socket; port 0 takes a free one. Throws SystemFailure.
[[nodiscard]] Descriptor listen_on(const Address& address, System& system = kernel());
/// A socket for a connection to this address. Throws SystemFailure if this process may have no more.
[[nodiscard]] Descriptor open_socket(const Address& to, System& system = kernel());
/// Starts a connection, from the address `from` unless it is empty. Throws SystemFailure for an immediate error; a
/// later one shows on the first use of the socket.
[[nodiscard]] Descriptor start_connection(Descriptor socket, const Address& to, const Address& from);
[[nodiscard]] inline Descriptor start_connection(const Address& to, const Address& from) {
  return start_connection(open_socket(to), to, from);
}
/// The next waiting connection, or none; then errno holds the reason.
[[nodiscard]] Descriptor accept_from(const Descriptor& listener);
/// Sets the options of every connection.
void tune(const Descriptor& socket) noexcept;
[[nodiscard]] inline Address local_address(const Descriptor& socket) {
  return socket.system().local_address(socket.number());
}
[[nodiscard]] inline Address remote_address(const Descriptor& socket) {
  return socket.system().remote_address(socket.number());
}
/// The process that opened the other end of a unix socket; 0 if there is none.
[[nodiscard]] int peer_process(int descriptor) noexcept;
/// Whether the other end of a unix socket was opened by this process's user.
[[nodiscard]] bool same_user(const Descriptor& socket) noexcept;

/// The result of one attempt to move bytes over a connection.
struct Moved {
  enum class Outcome : unsigned char { some, nothing_now, closed };
  Outcome outcome = Outcome::nothing_now;
  std::size_t bytes = 0;
  int error = 0;      ///< why it is closed: an errno, kForged, kCutOff; 0 if the other end closed it in order
  bool more = false;  ///< the next attempt may move bytes; else a poller event announces when
};

/// Under TLS: bytes failed authentication here, or the other end reported that ours did.
inline constexpr int kForged = EBADMSG;
/// Under TLS: the bytes end without a closing message of the other end.
inline constexpr int kCutOff = ENODATA;

/// A write does not change them.
[[nodiscard]] inline iovec piece_of(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

/// Number of bytes that an attempt requests.
[[nodiscard]] inline std::size_t bytes_of(std::span<const iovec> pieces) noexcept {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace syncopate::transport::socket
