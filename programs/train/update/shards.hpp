// Shards of a network: how ranks divide the optimizer's work, and how a checkpoint gathers its state.
#pragma once

#include "network/network.hpp"
#include "record/checkpoint.hpp"
#include "syncopate/group.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::train {

/// Ranks share the norms of layer-wise optimizers. With `own_shards_only` each rank updates only its shards. `group`
/// must outlive the optimizer that gets the result.
[[nodiscard]] SharedUpdate shared_update(Group& group, const Network& network, bool own_shards_only);

/// The complete state from all ranks' shards, on every rank. A collective.
[[nodiscard]] Kept gathered(Group& group, const Shards& shards, Optimizer& optimizer);
/// Gives each rank its shards of rank 0's complete state; other ranks' argument is ignored. A collective. Throws
/// Misuse on rank 0 if the state is of another optimizer.
void scatter(Group& group, const Shards& shards, const Kept& whole, Optimizer& optimizer);

}  // namespace syncopate::train
