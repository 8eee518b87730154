// A free TCP port on loopback that stays reserved until rank 0 listens on it.
#include "launch/port.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "syncopate/error.hpp"

namespace syncopate::tools::launch {

namespace {

/// Binds a socket to a free port of this address; 0 if the address has none, or does not exist.
template <class Address>
int reserve(process::Descriptor& reserved, Address address, in_port_t Address::*port) {
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  reserved = process::Descriptor(socket(generic->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool is_bound = reserved.open() && bind(reserved.get(), generic, length) == 0 &&
                        getsockname(reserved.get(), generic, &length) == 0;
  return is_bound ? ntohs(address.*port) : 0;
}

}  // namespace

ReservedPort::ReservedPort() {
  number_ = reserve(socket_, sockaddr_in{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}},
                    &sockaddr_in::sin_port);
  if (number_ == 0) {
    address_ = "::1";
    number_ = reserve(socket_, sockaddr_in6{.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback},
                      &sockaddr_in6::sin6_port);
  }
  if (number_ == 0) process::fail("no free port on 127.0.0.1 or ::1 (is the interface lo up?)");
  const int yes = 1;  // after bind: before it, the system might pick a port that another such socket holds
  setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

void require_free_port(const std::string& rendezvous) {
  constexpr std::string_view kScheme = "tcp://";
  const std::size_t colon = rendezvous.rfind(':');
  if (!rendezvous.starts_with(kScheme) || colon < kScheme.size()) return;
  std::string host = rendezvous.substr(kScheme.size(), colon - kScheme.size());
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const addrinfo hints{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), rendezvous.c_str() + colon + 1, &hints, &found) != 0) return;
  const process::Descriptor probe(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool is_taken = bind(probe.get(), found->ai_addr, found->ai_addrlen) != 0 && errno == EADDRINUSE;
  freeaddrinfo(found);
  if (is_taken)
    throw SystemFailure(fmt::format("--rendezvous {}: {}; give another port", rendezvous, std::strerror(EADDRINUSE)));
}

}  // namespace syncopate::tools::launch
