// A free TCP port on loopback that stays reserved until rank 0 listens on it.
#include "launch/port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

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

}  // namespace syncopate::tools::launch
