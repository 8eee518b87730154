// Verify: proves that the programs of all ranks compute a collective.
#pragma once

#include <string>

#include "collective/replay/ensemble.hpp"

namespace syncopate::collective::replay {

/// See verify_plans (syncopate/plan.hpp). Returns the flaw, or an empty string. For an ensemble with one program, rank
/// 0's part is enough: inputs and results of every other rank are rotations of rank 0's.
[[nodiscard]] std::string verify(const Ensemble& ensemble, Collective collective, int root);

}  // namespace syncopate::collective::replay
