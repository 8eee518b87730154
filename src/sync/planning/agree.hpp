// Agreement: every rank adopts rank 0's partition; a difference in gradients or options is an error on every rank.
#pragma once

#include <vector>

#include "sync/planning/proposal.hpp"

namespace syncopate::sync::planning {

/// Returns rank 0's plan on every rank. Throws Mismatch naming the first difference from rank 0, with both values: an
/// option that affects the result, or a gradient.
[[nodiscard]] AgreedPlan agree(Group& group, const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                               const AgreedPlan& mine);
/// Returns rank 0's partition on every rank; `mine` is used on rank 0 only.
[[nodiscard]] schedule::Partition agree(Group& group, std::size_t gradients, const schedule::Partition& mine);

}  // namespace syncopate::sync::planning
