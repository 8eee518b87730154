// Joining processes, with the rendezvous as an argument.
#pragma once

#include "transport/connect/launch.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/endpoint.hpp"
#include "transport/socket/address.hpp"

namespace syncopate::transport {

/// `options.rank` and `options.size` must be set. Rank 0's transport, streams, checksum and silence hold for all ranks.
/// Ranks with the same `host` share memory, if rank 0's transport allows it and they run as the same user. The
/// first failed rank is reported to `blame`.
[[nodiscard]] Endpoint join(const GroupOptions& options, connect::rendezvous::Rendezvous& meeting,
                            const std::string& host = socket::host_identity(),
                            std::optional<BlameDescriptor> blame = {});

}  // namespace syncopate::transport
