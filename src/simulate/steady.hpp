// Steady: one collective in virtual time where nobody competes for a port: by recurrence instead of by events.
#pragma once

#include <vector>

#include "collective/replay/ensemble.hpp"
#include "simulate/network.hpp"

namespace syncopate::simulate {

/// Whether every rank sends to one peer at most and receives from one, and no host's port serves two ranks.
[[nodiscard]] bool is_steady(const Network& network, const collective::replay::Ensemble& ensemble);

/// When each rank has finished, given when each calls: the times of the replay, to rounding, because where is_steady
/// holds, each message begins at a maximum of times that are known, whatever the order in which they are found. A
/// third of the time.
[[nodiscard]] std::vector<double> run_steady(const Network& network, const collective::replay::Ensemble& ensemble,
                                             std::uint64_t bytes, const std::vector<double>& called_s);

/// Whether on a uniform network all ranks leave at one time: as long after the last call as if all had called then.
[[nodiscard]] bool leaves_together(const collective::replay::Ensemble& ensemble);

}  // namespace syncopate::simulate
