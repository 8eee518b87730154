// Access: how a process proves that it belongs to the job.
#pragma once

#include <chrono>
#include <cstdint>

#include "server/streams/stream.hpp"
#include "syncopate/server.hpp"

namespace syncopate::server {

/// Limit of one attempt to reach a server that another process may be replacing.
inline constexpr std::chrono::milliseconds kAttempt{500};

/// A random number that identifies a process; never 0.
[[nodiscard]] std::uint64_t drawn_process();

/// Reads the secret. Throws Misuse for a file that others can read, SystemFailure.
[[nodiscard]] streams::EndOptions end_options(const JobAccess& access, const streams::Identity& self, const Log& log);

}  // namespace syncopate::server
