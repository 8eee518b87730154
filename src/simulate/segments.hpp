// Segments: one collective in virtual time as the engine runs it, in segments whose latencies overlap.
#pragma once

#include <vector>

#include "collective/plan/program.hpp"
#include "simulate/network.hpp"

namespace syncopate::simulate {

/// When each rank has finished, given when each calls. Cuts, waits and order of posts are those of collective/execute.
/// A segment leaves alpha after its post, while others pass through theirs; it holds the two ports for its n beta, in
/// the order of posts; reducing takes n gamma of the receiver, one segment after another. What arrives early waits, as
/// in a socket's buffer.
[[nodiscard]] std::vector<double> run_segments(const Network& network,
                                               const std::vector<collective::plan::Program>& programs,
                                               std::uint64_t bytes, const std::vector<double>& called_s);

}  // namespace syncopate::simulate
