// Linear pipeline: blocks flow along a chain of ranks; for long vectors the time hardly depends on the chain's length.
// Linear-pipeline paper section 3, algorithms for broadcast, reduce and all-reduce; step counts of spec "LP".
//
//   broadcast, 3 ranks, blocks a b c:   0 -a-> 1         0 -b-> 1 -a-> 2      0 -c-> 1 -b-> 2      1 -c-> 2
//   all-reduce: reduce along 0 -> ... -> p-1, each finished block goes p-1 -> 0 and is broadcast along the same chain
#include <algorithm>

#include "collective/algorithm.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::allreduce;
}

/// A rank's place in the chain; `rank_at` maps places to ranks.
struct Chain {
  std::uint32_t place = 0, size = 1, first = 0;
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t at) const { return (at + first) % size; }
  [[nodiscard]] bool is_head() const { return place == 0; }
  [[nodiscard]] bool is_tail() const { return place + 1 == size; }
};

/// The chain of a broadcast begins at the root; that of a reduce ends there.
Chain chain_of(const Shape& shape) {
  const std::uint32_t first = shape.collective == Collective::reduce ? shape.root + 1 : shape.root;
  return {(shape.rank + 2 * shape.size - first) % shape.size, shape.size, first % shape.size};
}

void pass(Plan& plan, const Chain& chain, std::uint32_t block, Act arrival) {
  if (!chain.is_head())
    plan.steps.push_back(
        {arrival, chain.rank_at(chain.place - 1), block, 1, arrival == Act::receive_reduce && chain.is_tail()});
  if (!chain.is_tail()) plan.steps.push_back({Act::send, chain.rank_at(chain.place + 1), block, 1, false});
}

/// Sends a finished block from the tail back to the head.
void wrap(Plan& plan, const Chain& chain, std::uint32_t block) {
  if (chain.is_tail()) plan.steps.push_back({Act::send, chain.rank_at(0), block, 1, false});
  if (chain.is_head()) plan.steps.push_back({Act::receive, chain.rank_at(chain.size - 1), block, 1, false});
}

Plan build(const Shape& shape) {
  const Chain chain = chain_of(shape);
  Plan plan{.chunks = shape.blocks, .steps = {}};
  const bool reduces = shape.collective != Collective::broadcast;
  const bool returns = shape.collective == Collective::allreduce;
  for (std::uint32_t block = 0; block < plan.chunks; ++block) {
    pass(plan, chain, block, reduces ? Act::receive_reduce : Act::receive);
    if (returns && chain.is_tail()) wrap(plan, chain, block);
  }
  // In the head's plan all blocks to be reduced come before the first block to be broadcast.
  for (std::uint32_t block = 0; returns && block < plan.chunks; ++block) {
    if (chain.is_head()) wrap(plan, chain, block);
    pass(plan, chain, block, Act::receive);
  }
  return plan;
}

double per_byte(Collective collective, const LinkCost& link) {
  return link.beta_s_per_byte + (collective == Collective::broadcast ? 0 : link.gamma_s_per_byte);
}

// b* = sqrt(n alpha / ((p-2) beta)). With two ranks no transfers overlap, but a block is reduced while the next
// arrives.
void resolve(Shape& shape, const Tuning& tuning, const Load& load) {
  const plan::PipelineShape pipeline{shape.collective == Collective::allreduce ? 2.0 : 1.0,
                                     std::max(shape.size - 2.0, 1.0)};
  shape.blocks =
      tuning.blocks > 0 ? tuning.blocks : plan::best_blocks(pipeline, load, per_byte(shape.collective, load.link));
}

// (m+p-2) (alpha + b beta [+ b gamma]), m blocks of b = n/m bytes. An all-reduce takes max(m, p) more steps, without
// b gamma, for the blocks that return and are broadcast.
double seconds(const Shape& shape, const Load& load) {
  const double m = shape.blocks, p = shape.size, block = load.bytes / m;
  const double hop = load.link.alpha_s + block * load.link.beta_s_per_byte;
  const double sum = shape.collective == Collective::broadcast ? 0 : block * load.link.gamma_s_per_byte;
  return (m + p - 2) * (hop + sum) + (shape.collective == Collective::allreduce ? std::max(m, p) * hop : 0);
}

}  // namespace

extern constinit const Algorithm linear_pipeline{
    .name = "linear_pipeline",
    .summary = "Blocks flow along a chain: broadcast and reduce at the speed of one link, whatever the ranks",
    .source = "Linear-pipeline paper section 3",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .resolve = resolve,
    .steady = true,
};

}  // namespace syncopate::collective::algorithm
