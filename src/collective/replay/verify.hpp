// Verify: whether the programs of all ranks compute a collective.
#pragma once

#include <string>

#include "collective/replay/ensemble.hpp"

namespace syncopate::collective::replay {

/// As verify_plans (syncopate/plan.hpp): empty, or what is wrong. Of an ensemble that rotates, rank 0's part proves
/// all: every rank brings, and is owed, rotations of what rank 0 does.
[[nodiscard]] std::string verify(const Ensemble& ensemble, Collective collective, int root);

}  // namespace syncopate::collective::replay
