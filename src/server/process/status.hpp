// Status: a server's report to an observer, as bytes.
#pragma once

#include <string>
#include <string_view>

#include "syncopate/server.hpp"

namespace syncopate::server {

[[nodiscard]] std::string bytes_of(const ServerStatus& status);
[[nodiscard]] ServerStatus status_from(std::string_view bytes);  ///< throws Corrupt
[[nodiscard]] double processor_seconds();                        ///< of this process

}  // namespace syncopate::server
