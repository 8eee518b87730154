// Agreement: what the ranks tell each other once, so that afterwards each knows who holds what.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/partition.hpp"
#include "syncopate/group.hpp"

namespace syncopate::cache {

/// What one rank says.
struct Statement {
  std::uint64_t version = 0, records = 0, seed = 0;  ///< equal on all ranks
  Room room;
  std::vector<std::uint32_t> on_disk;  ///< records that its disk has from an earlier run
};

/// Every rank's statement on every rank. Throws Mismatch where ranks read different sets or by different seeds
/// (RemoteFailure on a rank that another one's exception overtakes).
[[nodiscard]] std::vector<Statement> agree(Group& group, const Statement& mine);

}  // namespace syncopate::cache
