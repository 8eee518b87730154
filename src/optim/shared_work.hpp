// Shared work: the data that ranks exchange when they divide the norms of an optimizer.
#pragma once

#include <span>
#include <vector>

#include "optim/norms.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::optim {

/// Throws Misuse if the shards belong to other tensors, the rank is out of range, or a layer-wise rule has no gather.
void require_fits(const SharedWork& work, const Rule& rule, std::span<const WeightTensor> tensors);

/// Gathers the squares of all blocks on every rank. `squares[i]` belongs to tensor first + i, in the order of its
/// blocks, and is empty if not needed; this rank's own are in place.
void gather_squares(const SharedWork& work, std::size_t first, std::span<std::vector<Squares>> squares);

}  // namespace syncopate::optim
