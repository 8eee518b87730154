// Composing plans: pieces that several algorithms are made of.
#pragma once

#include <vector>

#include "collective/pattern/extra_ranks.hpp"
#include "collective/pattern/hypercube.hpp"
#include "collective/pattern/tree.hpp"
#include "collective/plan/shape.hpp"

namespace syncopate::collective::plan {

/// A guest gives its vector to its host before the exchange, and gets the result after it. Both return true if `rank`
/// is a guest, whose plan has nothing between.
bool fold_extra_ranks(Plan& plan, const pattern::ExtraRanks& extra_ranks, std::uint32_t rank);
bool unfold_extra_ranks(Plan& plan, const pattern::ExtraRanks& extra_ranks, std::uint32_t rank);

/// Recursive halving among the corners: corner c ends with chunk c complete. The plan has one chunk per corner.
void add_recursive_halving(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner);
/// Recursive doubling among the corners: corner c starts with chunk c and ends with all.
void add_recursive_gathering(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner);

/// Positions count from the root. Chunk numbers are positions, or ranks where `by_rank` (trees only).
struct Positions {
  std::uint32_t at = 0, size = 1, root = 0;
  bool by_rank = false;
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t position) const { return (position + root) % size; }
};
[[nodiscard]] Positions positions_of(const Shape& shape);

/// A ring with one chunk per position: position r ends with chunk r complete; or starts with it and ends with all.
void add_ring_reduce_scatter(Plan& plan, const Positions& positions);
void add_ring_gather(Plan& plan, const Positions& positions);
/// The chunk of every position leaves the root of a binomial tree for its position; or they come together at the root.
void add_tree_scatter(Plan& plan, const Positions& positions);
void add_tree_gather(Plan& plan, const Positions& positions);

/// One chunk up or down a tree whose nodes are ranks. The root of a reduction has all contributions after its last
/// child's.
void add_up(Plan& plan, const pattern::Node& node, std::uint32_t chunk);
void add_down(Plan& plan, const pattern::Node& node, std::uint32_t chunk);

/// A plan of some of the ranks as part of a larger one.
struct Embedding {
  std::vector<std::uint32_t> ranks;  ///< rank i of the part is ranks[i] of the whole
  std::uint32_t first = 0;           ///< the part's vector begins at this chunk of the whole,
  std::uint32_t scale = 1;           ///< of which so many make one of its chunks
  bool completes = true;             ///< what is complete in the part is complete in the whole
};
void embed(Plan& plan, const Plan& part, const Embedding& embedding);

/// The number of blocks m for which (units m + delay) steps of alpha + n/m c seconds end first: sqrt(delay n c /
/// (units alpha)), as a power of two so that few plans are kept, at most 4096.
struct PipelineShape {
  double units = 1, delay = 1;
};
[[nodiscard]] std::uint32_t best_blocks(const PipelineShape& pipeline, const Load& load, double seconds_per_byte);

}  // namespace syncopate::collective::plan
