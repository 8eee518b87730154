// Ends: both ends of a connection within this process.
#pragma once

#include <sys/socket.h>

#include <stdexcept>

#include "fuzz/target.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::fuzz {

struct Ends {
  Ends() {
    int numbers[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, numbers) != 0)
      throw std::runtime_error("no socket pair");
    tested = transport::socket::Channel(transport::socket::Descriptor(numbers[0]));
    peer = transport::socket::Channel(transport::socket::Descriptor(numbers[1]));
  }
  /// Sends bytes from the peer; false if they do not fit into the socket.
  [[nodiscard]] bool send(Input bytes) { return bytes.empty() || peer.write(bytes).bytes == bytes.size(); }

  transport::socket::Channel tested, peer;
};

}  // namespace syncopate::fuzz
