// Measuring for a fit: every collective by every algorithm, ascending in size, as often as the time allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fit/cluster.hpp"
#include "syncopate/cluster.hpp"
#include "syncopate/group.hpp"

namespace syncopate::tools::fit {

struct Effort {
  std::vector<std::uint64_t> bytes;  ///< ascending
  double budget_s = 0.05;            ///< at most: timed seconds of a collective, algorithm and size in one pass
  double limit_s = 45;               ///< of everything; large sizes are left out and passes ended to keep it
  Memory memory = Memory::group;     ///< in which vectors lie, where all ranks share a host's
};

/// Timed seconds of each of `rows` (a collective and an algorithm) at a size: all sizes together take at most half of
/// the limit by it, which leaves the other half to large sizes, whose calls take longer than that.
[[nodiscard]] inline double budget_of_row_s(const Effort& effort, std::size_t rows) {
  return std::min(effort.budget_s, effort.limit_s / 2 / static_cast<double>(rows * effort.bytes.size()));
}

/// Throws Misuse where the limit ends before two sizes can be timed: one point makes no line. `hosts` by rank, as in a
/// PlanRequest.
void require_enough_time(const Effort& effort, int ranks, const std::vector<std::uint32_t>& hosts);

/// Every rank calls it; rank 0's result is complete. Throws Corrupt where a collective gave a wrong answer, Misuse as
/// above.
[[nodiscard]] Measured measure(Group& group, const Effort& effort);

}  // namespace syncopate::tools::fit
