// Binary tree: blocks flow up (reduce) or down (broadcast) a balanced tree; log2 N latencies, twice the bytes per port.
// Sanders, Speck & Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 35(12), 2009, section 2; MG-WFBP Table II, row "binary tree", for a single block.
//
//   N = 7, root 0:        0            all-reduce: a block that is complete at the root goes down at once
//                       1   2          a node takes 2 blocks from its children for each that it passes on:
//                      3 4 5 6         2 units of time per block; 3 if both directions share the ports
#include <algorithm>

#include "collective/algorithm.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::allreduce;
}

/// The node of a rank, with ranks for positions.
pattern::Node node_of(const Shape& shape) {
  const plan::Positions positions = plan::positions_of(shape);
  pattern::Node node = pattern::heap_node(positions.at, shape.size);
  if (node.parent != pattern::kNobody) node.parent = positions.rank_of(node.parent);
  for (std::uint32_t& child : node.children)
    if (child != pattern::kNobody) child = positions.rank_of(child);
  return node;
}

/// Timetable of period 3 for an all-reduce. A block goes up from the first (second) child 2 (1) units before it goes up
/// from the parent, and down to that child 1 (2) units after it goes down to the parent. So no two of a node's three
/// arrivals, and no two of its three sends, happen at the same time.
struct Turns {
  std::uint32_t up = 0, down = 0;  ///< units before and after the root's turn
};

Turns turns_of(std::uint32_t at) {
  if (at == 0) return {};
  const Turns parent = turns_of((at - 1) / 2);
  return at % 2 == 1 ? Turns{parent.up + 2, parent.down + 1} : Turns{parent.up + 1, parent.down + 2};
}

void add_both_ways(Plan& plan, const Shape& shape) {
  const pattern::Node places = pattern::heap_node(plan::positions_of(shape).at, shape.size), node = node_of(shape);
  std::vector<std::pair<std::uint32_t, PlanStep>> timetable;
  const std::uint32_t before = 3 * std::bit_width(shape.size);
  for (std::uint32_t block = 0; block < shape.blocks; ++block) {
    Plan single{.chunks = shape.blocks, .steps = {}};
    plan::add_up(single, node, block);
    plan::add_down(single, node, block);
    for (const PlanStep& step : single.steps) {
      const bool with_parent = step.peer == node.parent;
      const bool is_up = step.act == Act::receive_reduce || (with_parent && step.act == Act::send);
      const std::uint32_t child = step.peer == node.children[0] ? places.children[0] : places.children[1];
      const Turns turns = turns_of(with_parent ? plan::positions_of(shape).at : child);
      timetable.emplace_back(3 * block + (is_up ? before - turns.up : before + turns.down), step);
    }
  }
  std::ranges::stable_sort(timetable, {}, [](const auto& entry) { return entry.first; });
  for (const auto& [time, step] : timetable) plan.steps.push_back(step);
}

Plan build(const Shape& shape) {
  const pattern::Node node = node_of(shape);
  Plan plan{.chunks = shape.blocks, .steps = {}};
  if (shape.collective == Collective::allreduce) {
    add_both_ways(plan, shape);
    return plan;
  }
  for (std::uint32_t block = 0; block < shape.blocks; ++block)
    shape.collective == Collective::reduce ? plan::add_up(plan, node, block) : plan::add_down(plan, node, block);
  return plan;
}

/// Units of time until a single block has reached every rank; a first child is served one unit before the second.
double depth(std::uint32_t at, std::uint32_t size) {
  const auto& children = pattern::heap_node(at, size).children;
  double most = 0;
  if (children[0] != pattern::kNobody) most = 1 + depth(children[0], size);
  if (children[1] != pattern::kNobody) most = std::max(most, 2 + depth(children[1], size));
  return most;
}

/// Blocks on the busiest port per block of the vector. Up to 4 ranks every inner node is the root or a child with one
/// child, so that the two directions never share a port.
double units(const Shape& shape) {
  if (shape.size == 2) return 1;
  return shape.collective == Collective::allreduce && shape.size > 4 ? 3 : 2;
}

double per_byte(Collective collective, const LinkCost& link) {
  return link.beta_s_per_byte + (collective == Collective::broadcast ? 0 : link.gamma_s_per_byte);
}

void resolve(Shape& shape, const Tuning& tuning, const Load& load) {
  const plan::PipelineShape pipeline{units(shape), std::max(depth(0, shape.size) - units(shape), 1.0)};
  shape.blocks =
      tuning.blocks > 0 ? tuning.blocks : plan::best_blocks(pipeline, load, per_byte(shape.collective, load.link));
}

// (u (m-1) + d) (alpha + b beta [+ b gamma]): m blocks of b = n/m bytes, u = units(), d = depth, about 1.5 log2 N.
// An all-reduce has 2 d instead of d, and gamma counts on the way up only.
double seconds(const Shape& shape, const Load& load) {
  const double block = load.bytes / shape.blocks, delay = depth(0, shape.size), more = shape.blocks - 1.0;
  const double hop = load.link.alpha_s + block * load.link.beta_s_per_byte, sum = block * load.link.gamma_s_per_byte;
  const double once = (units(shape) * more + delay) * hop;
  if (shape.collective == Collective::broadcast) return once;
  const double sums = (std::min(units(shape), 2.0) * more + delay) * sum;
  return once + sums + (shape.collective == Collective::allreduce ? delay * hop : 0);
}

}  // namespace

extern constinit const Algorithm binary_tree{
    .name = "binary_tree",
    .summary = "Blocks flow up and down one balanced tree: log2 N latencies, two to three times the bytes per port",
    .source = "Sanders, Speck & Traeff 2009, section 2; MG-WFBP Table II",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .resolve = resolve,
};

}  // namespace syncopate::collective::algorithm
