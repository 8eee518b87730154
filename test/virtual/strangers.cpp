// Strangers: they check every few milliseconds whether a place is free.
#include "virtual/strangers.hpp"

#include <utility>

namespace syncopate::virtual_world {

namespace {
constexpr int kHostOfStrangers = 1000;
constexpr auto kBetweenPresses = 3ms;
}  // namespace

Strangers::Strangers(Network& network, socket::Address to, std::size_t crowd, Time end)
    : network_(network), to_(std::move(to)), end_(end), sockets_(crowd) {
  press();
}

Strangers::~Strangers() {
  for (const SocketPtr& socket : sockets_)
    if (socket) network_.close(socket);
}

void Strangers::press() {
  if (network_.world().now() >= end_) return;
  for (SocketPtr& socket : sockets_) {
    if (socket && !socket->has_end && !socket->is_reset) continue;
    if (socket) network_.close(socket);
    socket = network_.open(kHostOfStrangers);
    socket->local = to_.with_port(1);
    static_cast<void>(network_.connect(socket, to_));
  }
  network_.world().in(kBetweenPresses, [this] { press(); });
}

}  // namespace syncopate::virtual_world
