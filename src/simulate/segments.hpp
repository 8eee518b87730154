// Segments: one collective in virtual time by the production engine, on virtual links.
#pragma once

#include <vector>

#include "collective/replay/price.hpp"
#include "simulate/exchange.hpp"

namespace syncopate::simulate {

/// When each rank finishes, given when each calls. Every rank runs the production engine (collective/engine); only the
/// links are virtual. A segment enters the ports alpha after its post, so that latencies overlap, and holds the two
/// ports for its n beta, in the order of posts. Reducing takes n gamma of the receiver's time, one segment after
/// another. A segment that arrives before its receive is posted waits, as in a socket's buffer. Frames have lengths but
/// no bytes. The ensemble has every rank's program.
[[nodiscard]] std::vector<double> run_segments(const Network& network, const collective::replay::Ensemble& ensemble,
                                               std::uint64_t bytes, const std::vector<double>& called_s);

}  // namespace syncopate::simulate
