// Bidirectional exchange: the two halves of a group exchange data in both directions at once, then the halves of those.
// Linear-pipeline paper section 2, "BE"; Barnett, Shuler, van de Geijn, Gupta, Payne & Watts, "Interprocessor
// collective communication library", SHPCC 1994; Bruck et al., IEEE TPDS 8(11), 1997, where N is not a power of two.
//
//   reduce-scatter, N = 4:   0 <-> 2, 1 <-> 3 exchange halves;  0 <-> 1, 2 <-> 3 quarters; all-gather: backwards
//   N = 5, no power of two:  rank r sends to r + 4, r + 2 and r + 1 the chunks (1, 2, 1) of those ranks and of the
//                            ranks that they will forward to; it receives from r - 4, r - 2, r - 1
//   broadcast: scatter down a binomial tree, then all-gather round a ring.   reduce: reduce-scatter, gather up the
//   tree.
#include <bit>
#include <cmath>

#include "collective/algorithm.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::allreduce || collective == Collective::reduce_scatter ||
         collective == Collective::allgather || collective == Collective::allgather_v;
}

/// Distances 1, 2, 4, ... below the number of ranks. In an all-gather a rank holds d chunks before distance d, starting
/// with its own, and receives up to d more from the rank at that distance.
std::vector<std::uint32_t> distances(std::uint32_t size) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t distance = 1; distance < size; distance *= 2) found.push_back(distance);
  return found;
}

/// Adds the chunks [first, first + count) modulo the number of chunks: one run or two.
void add_arc(Plan& plan, PlanStep step, std::uint32_t count) {
  step.first_chunk %= plan.chunks;
  step.chunk_count = std::min(count, plan.chunks - step.first_chunk);
  plan.steps.push_back(step);
  step.chunk_count = count - step.chunk_count;
  step.first_chunk = 0;
  step.completes = false;  // only single chunks are complete
  if (step.chunk_count > 0) plan.steps.push_back(step);
}

void add_scatter(Plan& plan, const plan::Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size;
  const auto steps = distances(size);
  for (auto distance = steps.rbegin(); distance != steps.rend(); ++distance) {
    const std::uint32_t count = std::min(*distance, size - *distance), to = at + *distance,
                        from = at + size - *distance;
    add_arc(plan, {Act::send, positions.rank_of(to), to, 0, false}, count);
    add_arc(plan, {Act::receive_reduce, positions.rank_of(from), at, 0, *distance == 1}, count);
  }
}

void add_gather(Plan& plan, const plan::Positions& positions) {
  const std::uint32_t at = positions.at, size = positions.size;
  for (const std::uint32_t distance : distances(size)) {
    const std::uint32_t count = std::min(distance, size - distance), to = at + size - distance, from = at + distance;
    add_arc(plan, {Act::send, positions.rank_of(to), at, 0, false}, count);
    add_arc(plan, {Act::receive, positions.rank_of(from), from, 0, false}, count);
  }
}

/// Positions are ranks, or count from the root if a tree follows; chunk c belongs to position c.
void add_exchange(Plan& plan, const plan::Positions& positions, bool gathers) {
  const pattern::Hypercube cube{positions.size};
  const bool is_cube = cube.corners() == positions.size && positions.root == 0;
  if (is_cube && gathers) return plan::add_recursive_gathering(plan, cube, positions.at);
  if (is_cube) return plan::add_recursive_halving(plan, cube, positions.at);
  if (gathers) return add_gather(plan, positions);
  add_scatter(plan, positions);
}

Plan build(const Shape& shape) {
  Plan plan{.chunks = shape.size, .steps = {}};
  const plan::Positions positions = plan::positions_of(shape);
  const Collective collective = shape.collective;
  const bool gathers = collective == Collective::allgather || collective == Collective::allgather_v;
  if (collective == Collective::broadcast) {
    plan::add_tree_scatter(plan, positions);
    plan::add_ring_gather(plan, positions);
    return plan;
  }
  if (!gathers) add_exchange(plan, positions, false);
  if (gathers || collective == Collective::allreduce) add_exchange(plan, positions, true);
  if (collective == Collective::reduce) plan::add_tree_gather(plan, positions);
  return plan;
}

// Each half: ceil(log2 N) alpha + (N-1)/N n beta, and (N-1)/N n gamma to reduce; the ring of a broadcast: (N-1) alpha.
// If N is not a power of two, an arc that wraps around the vector's end takes two messages. Through ring
// buffers of shared memory one core copies in both directions. That counts for collectives with a root, where the
// competing trees use one direction.
double seconds(const Shape& shape, const Load& load) {
  const Collective collective = shape.collective;
  const double levels = std::ceil(std::log2(shape.size)), share = load.bytes * (shape.size - 1) / shape.size;
  const double alpha = load.link.alpha_s, moved = share * load.link.beta_s_per_byte;
  const bool one_core = load.link.medium == Medium::memory && plan::has_root(collective);
  const double exchanged = one_core ? 2 * moved : moved;
  const double tree = levels * alpha + moved, wraps = std::has_single_bit(shape.size) ? 0 : levels - 1;
  if (collective == Collective::broadcast) return tree + (shape.size - 1) * alpha + exchanged;
  const double gathered = (levels + wraps) * alpha + exchanged;
  const double scattered = gathered + share * load.link.gamma_s_per_byte;
  if (collective == Collective::allreduce) return scattered + gathered;
  if (collective == Collective::reduce) return scattered + tree;
  return collective == Collective::reduce_scatter ? scattered : gathered;
}

}  // namespace

extern constinit const Algorithm bidirectional_exchange{
    .name = "bidirectional_exchange",
    .summary =
        "Halves of the group exchange data, then halves of those: fewest bytes, log2 N latencies, any rank count",
    .source = "Linear-pipeline paper section 2; Barnett et al. 1994; Bruck et al. 1997",
    .offers = offers,
    .build = build,
    .seconds = seconds,
};

}  // namespace syncopate::collective::algorithm
