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

ReservedPort::ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (!socket_.open() || bind(socket_.get(), generic, length) != 0 || getsockname(socket_.get(), generic, &length) != 0)
    process::fail("no free port on loopback");
  number_ = ntohs(address.sin_port);
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
