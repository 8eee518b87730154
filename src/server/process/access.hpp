// Access: the names of the two ends of a stream, and the options by which each proves that it belongs to the job.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/rpc/stream.hpp"
#include "syncopate/server.hpp"

namespace syncopate::server {

/// Limit of one attempt to reach a server that another process may be replacing.
inline constexpr std::chrono::milliseconds kAttempt{500};

[[nodiscard]] std::string name_of_worker(std::size_t worker);  ///< "worker 3"
[[nodiscard]] std::optional<std::size_t> worker_named(std::string_view name) noexcept;
[[nodiscard]] std::string name_of_server(std::size_t server);  ///< "server 3"

/// A random number that identifies a process; never 0.
[[nodiscard]] std::uint64_t drawn_process();

/// Reads the secret. Throws Misuse for a file that others can read, SystemFailure.
[[nodiscard]] rpc::EndOptions end_options(const JobAccess& access, std::string identity, const Log& log);

}  // namespace syncopate::server
