// Double binary tree: half of the blocks flow along each of two trees, and no rank is an inner node of both.
// It has the bandwidth of a pipeline with log2 N latencies.
// Sanders, Speck & Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 35(12), 2009, section 3.
//
//   N = 7, root 0; even blocks:    0 -> 4          odd blocks:    0 -> 3        places 1 ... N-1 in order; the second
//                                    2    6                          5    1     tree is the first one mirrored (N odd)
//                                   1 3  5                          6 4  2      or shifted by one place (N even)
#include <algorithm>

#include "collective/algorithm.hpp"
#include "collective/pattern/two_trees.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::allreduce;
}

using Timetable = std::vector<std::pair<std::uint32_t, PlanStep>>;

/// Adds the rank's transfers of one tree's blocks, from the root down; a reduction runs the timetable in reverse.
void add_tree(Timetable& timetable, const Shape& shape, const pattern::TwoTrees& trees, std::uint32_t tree) {
  const plan::Positions positions = plan::positions_of(shape);
  const pattern::Node node = trees.node(tree, positions.at);
  const auto note = [&](std::uint32_t into, Act act, std::uint32_t peer) {
    for (std::uint32_t block = tree; block < shape.blocks; block += 2)
      timetable.push_back({block - tree + trees.delay(tree, into), {act, positions.rank_of(peer), block, 1, false}});
  };
  if (node.parent != pattern::kNobody) note(positions.at, Act::receive, node.parent);
  for (const std::uint32_t child : node.children)
    if (child != pattern::kNobody) note(child, Act::send, child);
}

Timetable timetable_of(const Shape& shape) {
  const pattern::TwoTrees trees(shape.size);
  Timetable timetable;
  for (const std::uint32_t tree : {0U, 1U}) add_tree(timetable, shape, trees, tree);
  std::ranges::stable_sort(timetable, {}, [](const auto& entry) { return entry.first; });
  return timetable;
}

void add_reduce(Plan& plan, const Timetable& timetable, bool is_root) {
  for (auto entry = timetable.rbegin(); entry != timetable.rend(); ++entry) {
    PlanStep step = entry->second;
    step.first_chunk = plan.chunks - 1 - step.first_chunk;
    step.act = step.act == Act::send ? Act::receive_reduce : Act::send;
    step.completes = is_root;
    plan.steps.push_back(step);
  }
}

Plan build(const Shape& shape) {
  Plan plan{.chunks = shape.blocks, .steps = {}};
  const Timetable timetable = timetable_of(shape);
  if (shape.collective != Collective::broadcast) add_reduce(plan, timetable, shape.rank == shape.root);
  if (shape.collective != Collective::reduce)
    for (const auto& [time, step] : timetable) plan.steps.push_back(step);
  return plan;
}

double per_byte(Collective collective, const LinkCost& link) {
  return link.beta_s_per_byte + (collective == Collective::broadcast ? 0 : link.gamma_s_per_byte);
}

/// Both trees have about log2 N levels; a level takes one or two units of time.
void resolve(Shape& shape, const Tuning& tuning, const Load& load) {
  const plan::PipelineShape pipeline{1, 1.5 * std::bit_width(shape.size - 1)};
  shape.blocks =
      tuning.blocks > 0 ? tuning.blocks : plan::best_blocks(pipeline, load, per_byte(shape.collective, load.link));
}

// (m + d) (alpha + b beta [+ b gamma]): m blocks of b = n/m bytes; m + d is the timetable's length, d about 1.5 log2 N.
// An all-reduce has both directions. They overlap fully on two ranks, where the ports are otherwise idle, half on
// three.
double seconds(const Shape& shape, const Load& load) {
  const double m = shape.blocks, block = load.bytes / m;
  const double steps = pattern::TwoTrees(shape.size).duration(shape.blocks);
  const double hop = load.link.alpha_s + block * load.link.beta_s_per_byte, sum = block * load.link.gamma_s_per_byte;
  if (shape.collective == Collective::broadcast) return steps * hop;
  if (shape.collective == Collective::reduce) return steps * (hop + sum);
  const double overlap = shape.size == 2 ? m - 1 : shape.size == 3 ? (m - 1) / 2 : 0;
  return steps * (hop + sum) + (steps - overlap) * hop;
}

}  // namespace

extern constinit const Algorithm double_binary_tree{
    .name = "double_binary_tree",
    .summary =
        "Half of the blocks along each of two trees with different inner nodes: full bandwidth, log2 N latencies",
    .source = "Sanders, Speck & Traeff 2009, section 3",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .resolve = resolve,
};

}  // namespace syncopate::collective::algorithm
