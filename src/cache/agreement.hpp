// Agreement: the ranks exchange their data sets, budgets and disk contents once, so that each can compute all holders.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/partition.hpp"
#include "syncopate/group.hpp"

namespace syncopate::cache {

/// The data that one rank contributes to the agreement.
struct Statement {
  std::uint64_t version = 0, records = 0, seed = 0;  ///< equal on all ranks
  Room room;
  std::vector<std::uint32_t> on_disk;  ///< records that its disk has from an earlier run
};

/// Gathers every rank's statement on every rank. Throws Mismatch if ranks read different sets or use different seeds
/// (RemoteFailure on a rank that another rank's exception reaches first).
[[nodiscard]] std::vector<Statement> agree(Group& group, const Statement& mine);

}  // namespace syncopate::cache
