// Sealed memory: anonymous memory of a fixed size, passed from one process to another.
#pragma once

#include <cstdint>

#include "transport/socket/socket.hpp"

namespace syncopate::transport::shm {

/// Throws SystemFailure with the system's reason why `what` ("map", ...) fails for shared memory.
[[noreturn]] void refuse(const char* what);

/// New memory, all zero; pages are allocated on first write. Throws SystemFailure.
[[nodiscard]] socket::Descriptor make_sealed(std::uint64_t bytes);
/// The size of memory from another process. Throws Corrupt unless it can neither shrink nor grow: neither end can
/// resize it under the other.
[[nodiscard]] std::uint64_t sealed_bytes(const socket::Descriptor& memory);

}  // namespace syncopate::transport::shm
