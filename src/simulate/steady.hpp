// Steady: one collective in virtual time where nobody competes for a port: by recurrence instead of by events.
#pragma once

#include <vector>

#include "collective/plan/program.hpp"
#include "simulate/network.hpp"

namespace syncopate::simulate {

/// Whether every rank sends to one peer at most and receives from one, and no host's port serves two ranks.
[[nodiscard]] bool is_steady(const Network& network, const std::vector<collective::plan::Program>& programs);

/// When each rank has finished, given when each calls: the times of Exchanger's events, to rounding, because where
/// is_steady holds, each message begins at a maximum of times that are known, whatever the order in which they are
/// found. A tenth of the time: 256 ranks, each with noise of its own, exchange 107 layers in a second.
[[nodiscard]] std::vector<double> run_steady(const Network& network,
                                             const std::vector<collective::plan::Program>& programs,
                                             std::uint64_t bytes, const std::vector<double>& called_s);

}  // namespace syncopate::simulate
