// The kernel's watcher: one epoll set, which other threads can wake.
#pragma once

#include <memory>

#include "transport/socket/system.hpp"

namespace syncopate::transport::socket {

/// Throws SystemFailure.
[[nodiscard]] std::unique_ptr<Watcher> kernel_watcher();

}  // namespace syncopate::transport::socket
