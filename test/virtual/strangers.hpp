// Strangers: a host without the secret that holds silent connections to one rank.
#pragma once

#include <vector>

#include "virtual/network.hpp"

namespace syncopate::virtual_world {

class Strangers final {
 public:
  /// Makes `crowd` connections to that address, again whenever they are ended, from now on until `end`.
  Strangers(Network& network, socket::Address to, std::size_t crowd, Time end);
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  ~Strangers();

 private:
  void press();
  Network& network_;
  const socket::Address to_;
  const Time end_;
  std::vector<SocketPtr> sockets_;
};

}  // namespace syncopate::virtual_world
