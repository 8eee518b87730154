// Composing plans: steps that several algorithms share.
#pragma once

#include <vector>

#include "collective/pattern/pattern.hpp"
#include "collective/plan/shape.hpp"

namespace syncopate::collective::plan {

/// Before the exchange an extra rank sends its vector to its partner; after it, it receives the result. Both functions
/// return true if `rank` is an extra rank; its plan has no other steps.
bool fold_extra_ranks(Plan& plan, const pattern::ExtraRanks& extra_ranks, std::uint32_t rank);
bool unfold_extra_ranks(Plan& plan, const pattern::ExtraRanks& extra_ranks, std::uint32_t rank);

/// Recursive halving among the corners: corner c ends with chunk c complete. The plan has one chunk per corner.
void add_recursive_halving(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner);
/// Recursive doubling among the corners: corner c starts with chunk c and ends with all chunks.
void add_recursive_gathering(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner);

/// Numbers the ranks from the root on. Chunks are numbered by position, or by rank if `by_rank` (trees only).
struct Positions {
  std::uint32_t at = 0, size = 1, root = 0;
  bool by_rank = false;
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t position) const { return (position + root) % size; }
};
[[nodiscard]] Positions positions_of(const Shape& shape);

/// A ring with one chunk per position. Reduce-scatter: position r ends with chunk r complete. Gather: it starts with it
/// and ends with all chunks.
void add_ring_reduce_scatter(Plan& plan, const Positions& positions);
void add_ring_gather(Plan& plan, const Positions& positions);
/// A binomial tree with one chunk per position. Scatter: the chunks leave the root, each for its position. Gather: the
/// chunks of all positions come together at the root.
void add_tree_scatter(Plan& plan, const Positions& positions);
void add_tree_gather(Plan& plan, const Positions& positions);

/// Moves one chunk up or down a tree whose nodes are ranks. On the way up it is complete at the root once the last
/// child's contribution has arrived.
void add_up(Plan& plan, const pattern::Node& node, std::uint32_t chunk);
void add_down(Plan& plan, const pattern::Node& node, std::uint32_t chunk);

/// The embedding of the plan of a subset of ranks (the part) in the plan of all ranks (the whole).
struct Embedding {
  std::vector<std::uint32_t> ranks;  ///< rank i of the part is rank ranks[i] of the whole
  std::uint32_t first = 0;           ///< the chunk of the whole at which the part's vector begins
  std::uint32_t scale = 1;           ///< chunks of the whole in one chunk of the part
  bool completes = true;             ///< a chunk that is complete in the part is complete in the whole
};
void embed(Plan& plan, const Plan& part, const Embedding& embedding);

/// The number of blocks m that minimises (units m + delay) (alpha + n/m c), where n is the bytes and c is
/// `seconds_per_byte`: sqrt(delay n c / (units alpha)), as a power of two up to 4096 so that few plans are kept.
struct PipelineShape {
  double units = 1, delay = 1;
};
[[nodiscard]] std::uint32_t best_blocks(const PipelineShape& pipeline, const Load& load, double seconds_per_byte);

}  // namespace syncopate::collective::plan
