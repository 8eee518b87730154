// Recursive doubling: ranks whose numbers differ in one bit exchange whole vectors; fewest latencies of an all-reduce.
// Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005;
// MG-WFBP Table II, row "recursive doubling".
//
//   N = 4:   bit 0:  0 <-> 1, 2 <-> 3      bit 1:  0 <-> 2, 1 <-> 3
//   N = 6:   4 -> 0, 5 -> 1; the four as above; 0 -> 4, 1 -> 5
#include <bit>
#include <cmath>

#include "collective/algorithm.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) { return collective == Collective::allreduce || collective == Collective::barrier; }

Plan build(const Shape& shape) {
  const pattern::Hypercube cube{shape.size};
  Plan plan{.chunks = 1, .steps = {}};
  if (!plan::fold_extra_ranks(plan, cube.extra_ranks(), shape.rank))
    for (std::uint32_t mask = 1; mask < cube.corners(); mask *= 2) {
      plan.steps.push_back({Act::send, shape.rank ^ mask, 0, 1, false});
      plan.steps.push_back({Act::receive_reduce, shape.rank ^ mask, 0, 1, mask * 2 == cube.corners()});
    }
  plan::unfold_extra_ranks(plan, cube.extra_ranks(), shape.rank);
  return plan;
}

// log2 N (alpha + n beta + n gamma); extra ranks add two messages.
double seconds(const Shape& shape, const Load& load) {
  const double levels = std::floor(std::log2(shape.size));
  const double message = load.link.alpha_s + load.bytes * load.link.beta_s_per_byte;
  const double sum = load.bytes * load.link.gamma_s_per_byte;
  const bool has_extra_ranks = !std::has_single_bit(shape.size);
  return levels * (message + sum) + (has_extra_ranks ? 2 * message + sum : 0);
}

}  // namespace

extern constinit const Algorithm recursive_doubling{
    .name = "recursive_doubling",
    .summary = "Pairs exchange whole vectors: log2 N latencies, for short vectors",
    .source = "Thakur, Rabenseifner & Gropp 2005; MG-WFBP Table II",
    .offers = offers,
    .build = build,
    .seconds = seconds,
};

}  // namespace syncopate::collective::algorithm
