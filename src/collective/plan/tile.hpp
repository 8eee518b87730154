// Tile: a plan for a long vector becomes many plans for short pieces of it that follow each other closely.
#pragma once

#include <cstdint>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// Between ranks that share memory a long vector is limited by how often its bytes come from memory: a chunk of it that
/// was reduced has left the cache when its turn to be sent comes. So the vector is cut into `tiles` pieces and each is
/// carried out by `plan`: piece t + 1 begins two rounds behind piece t. Not for plans in which a rank owns a certain
/// chunk (reduce-scatter, all-gather), nor for those in which the n-th message of a route is in no fixed relation to
/// the n-th of another: for algorithms that say so (Algorithm::tiles). The result has tiles * plan.chunks chunks.
[[nodiscard]] Plan tiled(const Plan& plan, std::uint32_t tiles);

/// How many tiles serve a vector of so many bytes best, between so many ranks that share memory.
[[nodiscard]] std::uint32_t tiles_for(std::size_t bytes, int ranks);

}  // namespace syncopate::collective::plan
