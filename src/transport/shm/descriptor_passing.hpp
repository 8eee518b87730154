// Descriptor passing: passes shared memory, and wake-ups, from one process to another over a unix socket.
#pragma once

#include <optional>

#include "transport/socket/channel.hpp"

namespace syncopate::transport::shm {

/// Sends a descriptor with one byte. False: the connection is closed, or its buffer is full.
[[nodiscard]] bool send_descriptor(const socket::Descriptor& socket, const socket::Descriptor& memory) noexcept;
/// The descriptor that has arrived; empty if none has. Throws Corrupt if something else arrived, PeerLost if the
/// connection is closed, SystemFailure if this process may open no more files.
[[nodiscard]] std::optional<socket::Descriptor> receive_descriptor(const socket::Descriptor& socket);

/// Wakes the other end. Never blocks: a full buffer means that it is being woken already.
void ring(socket::Channel& channel) noexcept;
/// Takes the wake-ups that have arrived; false if the connection is closed.
[[nodiscard]] bool take_rings(socket::Channel& channel, std::size_t& rings) noexcept;

}  // namespace syncopate::transport::shm
