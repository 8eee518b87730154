// Composing plans: folding extra ranks, halving and gathering, rings, trees, embedding, numbers of blocks.
#include "collective/plan/compose.hpp"

#include <algorithm>
#include <cmath>

#include "collective/pattern/pattern.hpp"

namespace syncopate::collective::plan {

bool fold_extra_ranks(Plan& plan, const pattern::ExtraRanks& extra_ranks, std::uint32_t rank) {
  if (extra_ranks.is_extra(rank)) {
    plan.steps.push_back({Act::send, extra_ranks.partner_of(rank), 0, plan.chunks, false});
    return true;
  }
  for (std::uint32_t extra = extra_ranks.first_extra(rank); extra < extra_ranks.size; extra += extra_ranks.room) {
    const bool completes = extra_ranks.room == 1 && extra + 1 == extra_ranks.size;
    plan.steps.push_back({Act::receive_reduce, extra, 0, plan.chunks, completes});
  }
  return false;
}

bool unfold_extra_ranks(Plan& plan, const pattern::ExtraRanks& extra_ranks, std::uint32_t rank) {
  if (extra_ranks.is_extra(rank)) {
    plan.steps.push_back({Act::receive, extra_ranks.partner_of(rank), 0, plan.chunks, false});
    return true;
  }
  for (std::uint32_t extra = extra_ranks.first_extra(rank); extra < extra_ranks.size; extra += extra_ranks.room)
    plan.steps.push_back({Act::send, extra, 0, plan.chunks, false});
  return false;
}

void add_recursive_halving(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner) {
  pattern::Run run{0, cube.corners()};
  for (std::uint32_t mask = cube.corners() / 2; mask > 0; mask /= 2) {
    const std::uint32_t partner = corner ^ mask;
    const pattern::Run keep = pattern::kept_half(run, corner, mask), give = pattern::kept_half(run, partner, mask);
    plan.steps.push_back({Act::send, partner, give.first, give.count, false});
    plan.steps.push_back({Act::receive_reduce, partner, keep.first, keep.count, mask == 1});
    run = keep;
  }
}

void add_recursive_gathering(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner) {
  for (std::uint32_t mask = 1; mask < cube.corners(); mask *= 2) {
    const std::uint32_t partner = corner ^ mask;
    plan.steps.push_back({Act::send, partner, corner & ~(mask - 1), mask, false});
    plan.steps.push_back({Act::receive, partner, partner & ~(mask - 1), mask, false});
  }
}

void add_ring_reduce_scatter(Plan& plan, const Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size, before = pattern::previous(at, size);
  const std::uint32_t next = positions.rank_of(at + 1), previous = positions.rank_of(before);
  for (std::uint32_t step = 0; step + 1 < size; ++step) {
    plan.steps.push_back({Act::send, next, pattern::scattered_chunk(at, size, step), 1, false});
    plan.steps.push_back(
        {Act::receive_reduce, previous, pattern::scattered_chunk(before, size, step), 1, step + 2 == size});
  }
}

void add_ring_gather(Plan& plan, const Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size, before = pattern::previous(at, size);
  const std::uint32_t next = positions.rank_of(at + 1), previous = positions.rank_of(before);
  for (std::uint32_t step = 0; step + 1 < size; ++step) {
    plan.steps.push_back({Act::send, next, pattern::gathered_chunk(at, size, step), 1, false});
    plan.steps.push_back({Act::receive, previous, pattern::gathered_chunk(before, size, step), 1, false});
  }
}

Positions positions_of(const Shape& shape) {
  return {(shape.rank + shape.size - shape.root) % shape.size, shape.size, shape.root};
}

namespace {

/// Adds the chunks of positions [first, last): one run, or two if they wrap around after the last rank.
void add_run(Plan& plan, const Positions& positions, PlanStep step, std::uint32_t last) {
  const std::uint32_t first = step.first_chunk;
  if (!positions.by_rank) {
    step.chunk_count = last - first;
    return plan.steps.push_back(step);
  }
  step.first_chunk = positions.rank_of(first);
  step.chunk_count = std::min(last - first, positions.size - step.first_chunk);
  plan.steps.push_back(step);
  step.chunk_count = last - first - step.chunk_count;
  step.first_chunk = 0;
  if (step.chunk_count > 0) plan.steps.push_back(step);
}

}  // namespace

void add_tree_scatter(Plan& plan, const Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size;
  for (std::uint32_t mask = pattern::farthest(size); mask > 0; mask /= 2) {
    if (pattern::is_parent(at, size, mask))
      add_run(plan, positions, {Act::send, positions.rank_of(at + mask), at + mask, 0, false},
              std::min(at + 2 * mask, size));
    if (pattern::is_child(at, mask))
      add_run(plan, positions, {Act::receive, positions.rank_of(at - mask), at, 0, false}, std::min(at + mask, size));
  }
}

void add_tree_gather(Plan& plan, const Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size;
  for (std::uint32_t mask = 1; mask <= pattern::farthest(size); mask *= 2) {
    if (pattern::is_parent(at, size, mask))
      add_run(plan, positions, {Act::receive, positions.rank_of(at + mask), at + mask, 0, false},
              std::min(at + 2 * mask, size));
    if (pattern::is_child(at, mask))
      add_run(plan, positions, {Act::send, positions.rank_of(at - mask), at, 0, false}, std::min(at + mask, size));
  }
}

void add_up(Plan& plan, const pattern::Node& node, std::uint32_t chunk) {
  const bool is_root = node.parent == pattern::kNobody;
  for (const std::uint32_t child : node.children) {
    if (child == pattern::kNobody) continue;
    const bool is_last = child == node.children[1] || node.children[1] == pattern::kNobody;
    plan.steps.push_back({Act::receive_reduce, child, chunk, 1, is_root && is_last});
  }
  if (!is_root) plan.steps.push_back({Act::send, node.parent, chunk, 1, false});
}

void add_down(Plan& plan, const pattern::Node& node, std::uint32_t chunk) {
  if (node.parent != pattern::kNobody) plan.steps.push_back({Act::receive, node.parent, chunk, 1, false});
  for (const std::uint32_t child : node.children)
    if (child != pattern::kNobody) plan.steps.push_back({Act::send, child, chunk, 1, false});
}

void embed(Plan& plan, const Plan& part, const Embedding& embedding) {
  for (PlanStep step : part.steps) {
    step.peer = embedding.ranks[step.peer];
    step.first_chunk = embedding.first + step.first_chunk * embedding.scale;
    step.chunk_count *= embedding.scale;
    step.completes = step.completes && embedding.completes;
    plan.steps.push_back(step);
  }
}

std::uint32_t best_blocks(const PipelineShape& pipeline, const Load& load, double seconds_per_byte) {
  constexpr double kMost = 4096;
  const double work = pipeline.delay * load.bytes * seconds_per_byte, start = pipeline.units * load.link.alpha_s;
  if (!(work > start)) return 1;
  if (start * kMost * kMost <= work) return static_cast<std::uint32_t>(kMost);
  return static_cast<std::uint32_t>(std::exp2(std::round(std::log2(std::sqrt(work / start)))));
}

}  // namespace syncopate::collective::plan
