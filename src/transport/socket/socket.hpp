// Sockets: how the transport opens and tunes them; every one is non-blocking.
#pragma once

#include "transport/socket/address.hpp"
#include "transport/socket/descriptor.hpp"

namespace syncopate::transport::socket {

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

}  // namespace syncopate::transport::socket
