// Request: a worker's message to one server.
#pragma once

#include <cstdint>

#include "server/message.hpp"

namespace syncopate::server {

/// Lower priorities first (JobRules::priority_of).
struct Request {
  std::size_t server = 0;
  std::uint64_t priority = 0;
  WorkerMessage message{};
};

}  // namespace syncopate::server
