// Shared memory: sealed anonymous memory of a fixed size, and its passing to another process over a unix socket.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/socket/channel.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::shm {

/// Throws SystemFailure with the system's reason why `what` ("map", ...) fails for shared memory.
[[noreturn]] void refuse(const char* what);

/// New memory, all zero; pages are allocated on first write. Throws SystemFailure.
[[nodiscard]] socket::Descriptor make_sealed(std::uint64_t bytes);
/// The size of memory from another process. Throws Corrupt unless it can neither shrink nor grow: neither end can
/// resize it under the other.
[[nodiscard]] std::uint64_t sealed_bytes(const socket::Descriptor& memory);

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
