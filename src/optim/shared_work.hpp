// Shared work: what ranks tell one another where they divide the norms of an optimizer.
#pragma once

#include <span>
#include <vector>

#include "optim/norms.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::optim {

/// Throws Misuse where the shards are of other tensors, the rank is none of theirs, or a layer-wise rule cannot gather.
void require_fits(const SharedWork& work, const Rule& rule, std::span<const WeightTensor> tensors);

/// Gives every rank the squares of all blocks. `squares[i]` are of tensor first + i, in the order of its blocks, and
/// empty where nobody needs them; this rank's own are in place.
void gather_squares(const SharedWork& work, std::size_t first, std::span<std::vector<Squares>> squares);

}  // namespace syncopate::optim
