// Agreement: rank 0's gradients and partition become everyone's, or the difference becomes an error on every rank.
#pragma once

#include <vector>

#include "schedule/timeline.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// Rank 0's partition, on every rank. Throws Mismatch naming the first gradient that differs from rank 0's.
[[nodiscard]] schedule::Partition agree(Group& group, const std::vector<Gradient>& gradients,
                                        const schedule::Partition& mine);

}  // namespace syncopate::sync
