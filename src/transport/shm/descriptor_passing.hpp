// Descriptor passing: shared memory goes from one process to another over a unix socket, and so do wake-ups.
#pragma once

#include <optional>

#include "transport/socket/channel.hpp"

namespace syncopate::transport::shm {

/// Sends a descriptor with one byte. False: the connection is gone, or its buffer full.
[[nodiscard]] bool send_descriptor(const socket::Descriptor& socket, const socket::Descriptor& memory) noexcept;
/// The descriptor that has come; an empty optional if nothing has. Throws Corrupt if what came is none, PeerLost if
/// the connection is gone, SystemFailure if this process may open no more files.
[[nodiscard]] std::optional<socket::Descriptor> receive_descriptor(const socket::Descriptor& socket);

/// Wakes the other end. Never blocks: a full buffer means that it is being woken already.
void ring(socket::Channel& channel) noexcept;
/// Takes the rings that have come; false if the other end is gone.
[[nodiscard]] bool take_rings(socket::Channel& channel, std::size_t& rings) noexcept;

}  // namespace syncopate::transport::shm
