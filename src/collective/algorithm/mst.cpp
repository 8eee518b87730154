// Minimum spanning tree: the whole vector goes down (broadcast) or up (reduce) a binomial tree; fewest latencies.
// Linear-pipeline paper section 2, "MST"; MG-WFBP Table II, row "binary tree" for reduce then broadcast.
//
//   broadcast, N = 6, root 0:   distance 4: 0 -> 4     2: 0 -> 2     1: 0 -> 1, 2 -> 3, 4 -> 5
#include <cmath>

#include "collective/algorithm.hpp"
#include "collective/pattern/binomial_tree.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::allreduce || collective == Collective::barrier;
}

/// Positions count from the root; ranks are positions rotated by the root.
std::uint32_t rank_at(std::uint32_t position, const Shape& shape) { return (position + shape.root) % shape.size; }

void add_broadcast(Plan& plan, std::uint32_t at, const Shape& shape) {
  for (std::uint32_t mask = pattern::farthest(shape.size); mask > 0; mask /= 2) {
    if (pattern::is_parent(at, shape.size, mask))
      plan.steps.push_back({Act::send, rank_at(at + mask, shape), 0, 1, false});
    if (pattern::is_child(at, mask)) plan.steps.push_back({Act::receive, rank_at(at - mask, shape), 0, 1, false});
  }
}

void add_reduce(Plan& plan, std::uint32_t at, const Shape& shape) {
  const std::uint32_t farthest = pattern::farthest(shape.size);
  for (std::uint32_t mask = 1; mask <= farthest; mask *= 2) {
    if (pattern::is_child(at, mask)) {
      plan.steps.push_back({Act::send, rank_at(at - mask, shape), 0, 1, false});
      return;
    }
    if (pattern::is_parent(at, shape.size, mask))
      plan.steps.push_back({Act::receive_reduce, rank_at(at + mask, shape), 0, 1, mask == farthest});
  }
}

Plan build(const Shape& shape) {
  Plan plan{.chunks = 1, .steps = {}};
  const std::uint32_t at = (shape.rank + shape.size - shape.root) % shape.size;
  if (shape.collective != Collective::broadcast) add_reduce(plan, at, shape);
  if (shape.collective != Collective::reduce) add_broadcast(plan, at, shape);
  return plan;
}

// ceil(log2 N) (alpha + n beta) down; the same plus n gamma per level up; all-reduce is up, then down.
double seconds(Collective collective, double ranks, double bytes, const LinkCost& link) {
  const double levels = std::ceil(std::log2(ranks));
  const double down = levels * (link.alpha_s + bytes * link.beta_s_per_byte);
  const double up = down + levels * bytes * link.gamma_s_per_byte;
  if (collective == Collective::broadcast) return down;
  return collective == Collective::reduce ? up : up + down;
}

}  // namespace

extern constinit const Algorithm mst{
    .name = "mst",
    .summary = "Binomial tree carrying whole vectors: log2 N latencies, log2 N times the bytes",
    .source = "Linear-pipeline paper section 2; MG-WFBP Table II",
    .offers = offers,
    .build = build,
    .seconds = seconds,
};

}  // namespace syncopate::collective::algorithm
