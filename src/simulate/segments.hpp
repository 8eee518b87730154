// Segments: one collective in virtual time by the engine itself: segments whose latencies overlap on virtual links.
#pragma once

#include <vector>

#include "collective/replay/ensemble.hpp"
#include "simulate/network.hpp"

namespace syncopate::simulate {

/// When each rank has finished, given when each calls. The production engine (collective/engine) of every rank cuts,
/// waits and posts; only the links are virtual. A segment leaves alpha after its post, while others pass through
/// theirs; it holds the two ports for its n beta, in the order of posts; reducing takes n gamma of the receiver, one
/// segment after another. What arrives before its receive is posted waits, as in a socket's buffer. Frames have lengths
/// and no bytes. The ensemble holds every rank's program.
[[nodiscard]] std::vector<double> run_segments(const Network& network, const collective::replay::Ensemble& ensemble,
                                               std::uint64_t bytes, const std::vector<double>& called_s);

}  // namespace syncopate::simulate
