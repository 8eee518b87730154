// Agreement: rank 0's gradients and partition become everyone's, or the difference becomes an error on every rank.
#pragma once

#include <vector>

#include "schedule/timeline.hpp"
#include "sync/planning/planner.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync::planning {

/// What rank 0 decides before the first step.
struct AgreedPlan {
  PlannerOptions planner;
  schedule::Partition partition;  ///< of the first step; empty: the step decides
};

/// Rank 0's plan, on every rank. Throws Mismatch naming the first option that decides the result, or the first
/// gradient, that differs from rank 0's, and both values.
[[nodiscard]] AgreedPlan agree(Group& group, const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                               const AgreedPlan& mine);
/// Rank 0's partition, on every rank; `mine` elsewhere does not count.
[[nodiscard]] schedule::Partition agree(Group& group, std::size_t gradients, const schedule::Partition& mine);

}  // namespace syncopate::sync::planning
