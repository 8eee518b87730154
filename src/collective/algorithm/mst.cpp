// Minimum spanning tree: the whole vector goes down (broadcast) or up (reduce) a binomial tree; fewest latencies.
// Linear-pipeline paper section 2, "MST"; MG-WFBP Table II, row "binary tree" for reduce then broadcast.
//
//   broadcast, N = 6, root 0:   distance 4: 0 -> 4     2: 0 -> 2     1: 0 -> 1, 2 -> 3, 4 -> 5
#include <cmath>

#include "collective/algorithm.hpp"
#include "collective/pattern/pattern.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::allreduce || collective == Collective::barrier || collective == Collective::gather ||
         collective == Collective::scatter;
}

void add_broadcast(Plan& plan, const plan::Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size;
  for (std::uint32_t mask = pattern::farthest(size); mask > 0; mask /= 2) {
    if (pattern::is_parent(at, size, mask))
      plan.steps.push_back({Act::send, positions.rank_of(at + mask), 0, 1, false});
    if (pattern::is_child(at, mask)) plan.steps.push_back({Act::receive, positions.rank_of(at - mask), 0, 1, false});
  }
}

void add_reduce(Plan& plan, const plan::Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size, farthest = pattern::farthest(size);
  for (std::uint32_t mask = 1; mask <= farthest; mask *= 2) {
    if (pattern::is_child(at, mask))
      return plan.steps.push_back({Act::send, positions.rank_of(at - mask), 0, 1, false});
    if (pattern::is_parent(at, size, mask))
      plan.steps.push_back({Act::receive_reduce, positions.rank_of(at + mask), 0, 1, mask == farthest});
  }
}

/// Gather and scatter: chunk r belongs to rank r. All others: one chunk.
Plan build(const Shape& shape) {
  const bool parts = shape.collective == Collective::gather || shape.collective == Collective::scatter;
  Plan plan{.chunks = parts ? shape.size : 1, .steps = {}};
  plan::Positions positions = plan::positions_of(shape);
  positions.by_rank = parts;
  if (shape.collective == Collective::gather) plan::add_tree_gather(plan, positions);
  if (shape.collective == Collective::scatter) plan::add_tree_scatter(plan, positions);
  if (parts) return plan;
  if (shape.collective != Collective::broadcast) add_reduce(plan, positions);
  if (shape.collective != Collective::reduce) add_broadcast(plan, positions);
  return plan;
}

// Broadcast: ceil(log2 N) (alpha + n beta); reduce: n gamma more per level; all-reduce: both.
// Gather and scatter: ceil(log2 N) alpha + (N-1)/N n beta.
double seconds(const Shape& shape, const Load& load) {
  const double levels = std::ceil(std::log2(shape.size));
  if (shape.collective == Collective::gather || shape.collective == Collective::scatter)
    return levels * load.link.alpha_s + (shape.size - 1.0) / shape.size * load.bytes * load.link.beta_s_per_byte;
  const double down = levels * (load.link.alpha_s + load.bytes * load.link.beta_s_per_byte);
  const double up = down + levels * load.bytes * load.link.gamma_s_per_byte;
  if (shape.collective == Collective::broadcast) return down;
  return shape.collective == Collective::reduce ? up : up + down;
}

}  // namespace

extern constinit const Algorithm mst{
    .name = "mst",
    .summary = "Binomial tree carrying whole vectors: log2 N latencies, log2 N times the bytes (gather, scatter: once)",
    .source = "Linear-pipeline paper section 2; MG-WFBP Table II",
    .offers = offers,
    .build = build,
    .seconds = seconds,
};

}  // namespace syncopate::collective::algorithm
