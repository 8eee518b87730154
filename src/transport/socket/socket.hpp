// Sockets: owned descriptors, and how the transport opens and tunes them; every one is non-blocking.
#pragma once

#include <utility>

#include "transport/socket/address.hpp"

namespace syncopate::transport::socket {

/// Owns a file descriptor.
class Descriptor final {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// A listening socket; port 0 takes a free one. Throws SystemFailure.
[[nodiscard]] Descriptor listen_on(const Address& address);
/// Starts a connection, from the address `from` unless it is empty. An error shows on the first use of the socket.
[[nodiscard]] Descriptor start_connection(const Address& to, const Address& from);
/// The next waiting connection, or none; errno says why.
[[nodiscard]] Descriptor accept_from(const Descriptor& listener);
/// Socket options every connection gets.
void tune(const Descriptor& socket) noexcept;
[[nodiscard]] Address local_address(const Descriptor& socket);
[[nodiscard]] Address remote_address(const Descriptor& socket);
/// The process that opened the other end of a unix socket; 0 if that is none.
[[nodiscard]] int peer_process(int descriptor) noexcept;
/// Whether the other end of a unix socket was opened by this process's user.
[[nodiscard]] bool same_user(const Descriptor& socket) noexcept;

}  // namespace syncopate::transport::socket
