// Sockets: how the transport opens and tunes them; every one is non-blocking.
#include "transport/socket/socket.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "syncopate/error.hpp"

namespace syncopate::transport::socket {

namespace {

constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

void set(int socket, int level, int option, int value) noexcept {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// Who opened the other end of a unix socket.
std::optional<ucred> credentials(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool is_known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  return is_known ? std::optional(peer) : std::nullopt;
}

[[noreturn]] void refuse(const char* what, const Address& address) {
  throw SystemFailure(fmt::format("cannot {} {}: {}", what, address.text(), std::strerror(errno)));
}

}  // namespace

Descriptor listen_on(const Address& address) {
  Descriptor listener(::socket(address.family(), kKind, 0));
  if (!listener) refuse("open a socket for", address);
  set(listener.number(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(listener.number(), address.raw(), address.size()) != 0) refuse("listen on", address);
  if (::listen(listener.number(), SOMAXCONN) != 0) refuse("listen on", address);
  return listener;
}

Descriptor open_socket(const Address& to) {
  Descriptor socket(::socket(to.family(), kKind, 0));
  if (!socket) refuse("open a socket for", to);
  return socket;
}

Descriptor start_connection(Descriptor socket, const Address& to, const Address& from) {
  tune(socket);
  if (from.size() != 0 && from.family() == to.family() && from.loopback() == to.loopback()) {
    // The port is chosen at connect, where it need only be unique per destination.
    set(socket.number(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (::bind(socket.number(), from.raw(), from.size()) != 0) refuse("send from", from);
  }
  if (::connect(socket.number(), to.raw(), to.size()) != 0 && errno != EINPROGRESS) refuse("connect to", to);
  return socket;
}

Descriptor accept_from(const Descriptor& listener) {
  return Descriptor(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

// No TCP_USER_TIMEOUT: it would also cut a connection whose reader has not posted its receive for long (zero window),
// which is how back-pressure works here. Vanished hosts are noticed by heartbeats. Buffers stay with kernel autotuning.
void tune(const Descriptor& socket) noexcept {
  set(socket.number(), IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

Address local_address(const Descriptor& socket) {
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&raw), &size);
  return {reinterpret_cast<const sockaddr*>(&raw), size};
}

int peer_process(int descriptor) noexcept {
  const auto peer = credentials(descriptor);
  return peer ? peer->pid : 0;
}

bool same_user(const Descriptor& socket) noexcept {
  const auto peer = credentials(socket.number());
  return peer && peer->uid == ::geteuid();
}

Address remote_address(const Descriptor& socket) {
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  if (::getpeername(socket.number(), reinterpret_cast<sockaddr*>(&raw), &size) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&raw), size};
}

}  // namespace syncopate::transport::socket
