// Joining over TCP, with the meeting place as an argument.
#pragma once

#include "transport/endpoint.hpp"
#include "transport/launch.hpp"
#include "transport/rendezvous/rendezvous.hpp"

namespace syncopate::transport::tcp {

/// `options.rank` and `options.size` must be set. Rank 0's streams, checksum and silence hold for all ranks.
[[nodiscard]] Endpoint join(const GroupOptions& options, rendezvous::Rendezvous& meeting);

}  // namespace syncopate::transport::tcp
