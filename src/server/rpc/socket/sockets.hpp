// Sockets: listening sockets, and the identity of the processes that connect to them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "server/rpc/socket/address.hpp"

namespace syncopate::server::rpc {

/// A file descriptor that closes itself.
class Socket final {
 public:
  Socket() = default;
  explicit Socket(int number) noexcept : number_(number) {}
  Socket(Socket&& other) noexcept : number_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket();
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// Throws SystemFailure naming the address.
[[nodiscard]] Socket listen_at(const Address& address);
[[nodiscard]] std::uint16_t port_of(const Socket& socket);
/// The next connection, tuned for small messages; empty: errno holds the reason.
[[nodiscard]] Socket accept_from(const Socket& listener);
/// gRPC's name of a connection's other end, decoded; empty for a unix socket.
[[nodiscard]] std::string peer_name(const Socket& socket);
/// gRPC's name of a peer, without its encoding of '[', ']' and '%'.
[[nodiscard]] std::string decoded_peer(const std::string& peer);
/// Whether this process's user opened the other end of a unix socket.
[[nodiscard]] bool is_of_this_user(const Socket& socket);

}  // namespace syncopate::server::rpc
