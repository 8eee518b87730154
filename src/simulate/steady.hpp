// Steady: one collective in virtual time by recurrence, for plans whose messages do not compete for ports.
#pragma once

#include <vector>

#include "collective/replay/price.hpp"
#include "simulate/exchange.hpp"

namespace syncopate::simulate {

/// Whether every rank sends to at most one peer and receives from at most one, and no two ranks share a host's port.
[[nodiscard]] bool is_steady(const Network& network, const collective::replay::Ensemble& ensemble);

/// When each rank finishes, given when each calls. Equals the replay to rounding: if is_steady holds, each message
/// begins at a maximum of known times, in whatever order they are computed. It takes a third of the replay's time.
[[nodiscard]] std::vector<double> run_steady(const Network& network, const collective::replay::Ensemble& ensemble,
                                             std::uint64_t bytes, const std::vector<double>& called_s);

/// Whether on a uniform network all ranks finish at one time: as long after the last call as if all had called then.
[[nodiscard]] bool leaves_together(const collective::replay::Ensemble& ensemble);

}  // namespace syncopate::simulate
