// Shards of a network: how ranks divide the optimizer's work, and its state as one where a checkpoint needs it.
#pragma once

#include "network/network.hpp"
#include "record/checkpoint.hpp"
#include "syncopate/group.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::train {

/// Ranks share the norms of layer-wise optimizers; with `own_shards_only` each updates its shards alone. `group` must
/// outlive the optimizer that gets it.
[[nodiscard]] SharedWork shared_work(Group& group, const Network& network, bool own_shards_only);

/// The state of all ranks' shards as one, on every rank. A collective.
[[nodiscard]] Kept gathered(Group& group, const Shards& shards, Optimizer& optimizer);
/// Gives each rank its shards of a whole state, which rank 0 has; other ranks pass any. A collective. Throws Misuse on
/// rank 0 where another optimizer kept it.
void scatter(Group& group, const Shards& shards, const Kept& whole, Optimizer& optimizer);

}  // namespace syncopate::train
