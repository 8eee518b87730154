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

Descriptor::Descriptor(int number, System& system) try : number_(number), system_(&system) {
  if (number >= 0) system.own(number);
} catch (...) {
  system.close(number);
  throw;
}

Descriptor::~Descriptor() {
  if (number_ >= 0 && !process_.is_inherited()) system_->close(number_);
}

namespace {

/// The process and user that opened the other end of a unix socket.
std::optional<ucred> credentials(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool is_known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  return is_known ? std::optional(peer) : std::nullopt;
}

[[noreturn]] void refuse(const char* what, const Address& address) {
  throw SystemFailure(fmt::format("cannot {} {}: {}", what, address.text(), reason_of(errno)));
}

}  // namespace

std::string reason_of(int error) {
  const char* remedy = error == EMFILE   ? "; raise the limit (ulimit -n)"
                       : error == ENFILE ? "; raise the machine's limit (sysctl fs.file-max)"
                                         : "";
  return std::string(std::strerror(error)) + remedy;
}

Descriptor listen_on(const Address& address, System& system) {
  Descriptor listener(system.open(address.family()), system);
  if (!listener) refuse("open a socket for", address);
  system.set(listener.number(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (system.bind(listener.number(), address) != 0) refuse("listen on", address);
  if (system.listen(listener.number()) != 0) refuse("listen on", address);
  return listener;
}

Descriptor open_socket(const Address& to, System& system) {
  Descriptor socket(system.open(to.family()), system);
  if (!socket) refuse("open a socket for", to);
  return socket;
}

Descriptor start_connection(Descriptor socket, const Address& to, const Address& from) {
  System& system = socket.system();
  tune(socket);
  if (from.size() != 0 && from.family() == to.family() && from.loopback() == to.loopback()) {
    // The port is chosen at connect, where it must be unique only per destination.
    system.set(socket.number(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (system.bind(socket.number(), from) != 0) refuse("send from", from);
  }
  if (system.connect(socket.number(), to) != 0 && errno != EINPROGRESS) refuse("connect to", to);
  return socket;
}

Descriptor accept_from(const Descriptor& listener) {
  return Descriptor(listener.system().accept(listener.number()), listener.system());
}

// No TCP_USER_TIMEOUT: it would also cut a connection whose reader posts its receive late (zero window), which is how
// back-pressure works here. Heartbeats detect vanished hosts. Kernel autotuning sizes the buffers.
void tune(const Descriptor& socket) noexcept {
  socket.system().set(socket.number(), IPPROTO_TCP, TCP_NODELAY, 1);
  socket.system().set(socket.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

int peer_process(int descriptor) noexcept {
  const auto peer = credentials(descriptor);
  return peer ? peer->pid : 0;
}

bool same_user(const Descriptor& socket) noexcept {
  const auto peer = credentials(socket.number());
  return peer && peer->uid == ::geteuid();
}

}  // namespace syncopate::transport::socket
