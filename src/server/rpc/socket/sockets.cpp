// Sockets: listening sockets, and the identity of the processes that connect to them.
#include "server/rpc/socket/sockets.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::server::rpc {

namespace {

union AnyAddress {
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
  sockaddr_un named;
};

std::pair<AnyAddress, socklen_t> system_address(const Address& address) {
  AnyAddress made{};
  if (address.is_named) {
    made.named.sun_family = AF_UNIX;
    std::ranges::copy(address.text.substr(1), made.named.sun_path + 1);  // the first byte stays zero: no file
    return {made, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.text.size())};
  }
  const std::size_t colon = address.text.rfind(':');
  std::string host = address.text.substr(0, colon);
  std::uint16_t port = 0;
  std::from_chars(address.text.data() + colon + 1, address.text.data() + address.text.size(), port);
  if (host.front() == '[') {
    host = host.substr(1, host.size() - 2);
    made.six.sin6_family = AF_INET6;
    made.six.sin6_port = htons(port);
    ::inet_pton(AF_INET6, host.c_str(), &made.six.sin6_addr);
    return {made, sizeof made.six};
  }
  made.four.sin_family = AF_INET;
  made.four.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &made.four.sin_addr);
  return {made, sizeof made.four};
}

}  // namespace

Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

Socket listen_at(const Address& address) {
  const auto [at, length] = system_address(address);
  Socket socket(::socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  if (socket && !address.is_named) ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket && at.any.sa_family == AF_INET6)
    ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (!socket || ::bind(socket.number(), &at.any, length) != 0 || ::listen(socket.number(), SOMAXCONN) != 0)
    throw SystemFailure(fmt::format("cannot listen at {}: {}", address.text, std::strerror(errno)));
  return socket;
}

std::uint16_t port_of(const Socket& socket) {
  AnyAddress own{};
  socklen_t length = sizeof own;
  ::getsockname(socket.number(), &own.any, &length);
  return ntohs(own.any.sa_family == AF_INET6 ? own.six.sin6_port : own.four.sin_port);
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int on = 1, error = errno;
  // fails without effect for a unix socket
  if (socket) ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  errno = error;
  return socket;
}

std::string peer_name(const Socket& socket) {
  AnyAddress peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(socket.number(), &peer.any, &length) != 0) return "unknown";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (peer.any.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &peer.four.sin_addr, text.data(), text.size());
    return fmt::format("ipv4:{}:{}", text.data(), ntohs(peer.four.sin_port));
  }
  if (peer.any.sa_family != AF_INET6) return {};
  const int port = ntohs(peer.six.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&peer.six.sin6_addr)) {
    ::inet_ntop(AF_INET, peer.six.sin6_addr.s6_addr + 12, text.data(), text.size());
    return fmt::format("ipv4:{}:{}", text.data(), port);
  }
  ::inet_ntop(AF_INET6, &peer.six.sin6_addr, text.data(), text.size());
  if (peer.six.sin6_scope_id == 0) return fmt::format("ipv6:[{}]:{}", text.data(), port);
  return fmt::format("ipv6:[{}%{}]:{}", text.data(), peer.six.sin6_scope_id, port);
}

std::string decoded_peer(const std::string& peer) {
  std::string text;
  for (std::size_t i = 0; i < peer.size(); ++i) {
    unsigned char letter = 0;
    const bool is_coded = peer[i] == '%' && i + 2 < peer.size() &&
                          std::from_chars(&peer[i + 1], &peer[i + 1] + 2, letter, 16).ptr == &peer[i + 1] + 2;
    text += is_coded ? static_cast<char>(letter) : peer[i];
    if (is_coded) i += 2;
  }
  return text;
}

bool is_of_this_user(const Socket& socket) {
  ucred other{};
  socklen_t length = sizeof other;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == ::geteuid();
}

}  // namespace syncopate::server::rpc
