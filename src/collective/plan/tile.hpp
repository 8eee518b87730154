// Tile: a plan for a long vector becomes many overlapping plans for short pieces of it.
#pragma once

#include <cstdint>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// Between ranks that share memory a long vector is limited by memory bandwidth: a chunk that has been reduced has left
/// the cache before it is sent on. So the vector is cut into `tiles` pieces, each carried out by `plan`; piece t + 1
/// begins two rounds after piece t. The result has tiles * plan.chunks chunks. Not for plans in which a rank owns a
/// certain chunk (reduce-scatter, all-gather), nor for plans whose routes proceed at different rates: an algorithm
/// states whether its plans can be tiled (Algorithm::tiles).
[[nodiscard]] Plan tiled(const Plan& plan, std::uint32_t tiles);

/// The best number of tiles for a vector of `bytes` bytes between `ranks` ranks that share memory.
[[nodiscard]] std::uint32_t tiles_for(std::size_t bytes, int ranks);

}  // namespace syncopate::collective::plan
