// Sealed memory: anonymous, of a size that nobody can change any more, handed from one process to another.
#pragma once

#include <cstdint>

#include "transport/socket/socket.hpp"

namespace syncopate::transport::shm {

/// Throws SystemFailure with the system's word on why `what` ("map", ...) cannot be done to shared memory.
[[noreturn]] void refuse(const char* what);

/// New memory, all zero; its pages come when they are first written. Throws SystemFailure.
[[nodiscard]] socket::Descriptor make_sealed(std::uint64_t bytes);
/// The size of memory that came from another process. Throws Corrupt unless it can be neither shrunk nor grown: no end
/// can pull it from under the other.
[[nodiscard]] std::uint64_t sealed_bytes(const socket::Descriptor& memory);

}  // namespace syncopate::transport::shm
