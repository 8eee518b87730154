// Halving-doubling: reduce-scatter by exchanging halves, quarters, ...; all-gather by the same pairs backwards.
// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; MG-WFBP Table II, row "halving/doubling".
//
//   N = 4:   0 <-> 2 halves, 0 <-> 1 quarters: rank c owns chunk c; then 0 <-> 1 quarters, 0 <-> 2 halves
//   N not a power of two: an extra rank sends its vector to its partner first and receives the result last
#include <bit>
#include <cmath>

#include "collective/algorithm.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) { return collective == Collective::allreduce; }

Plan build(const Shape& shape) {
  const pattern::Hypercube cube{shape.size};
  Plan plan{.chunks = cube.corners(), .steps = {}};
  if (!plan::fold_extra_ranks(plan, cube.extra_ranks(), shape.rank)) {
    plan::add_recursive_halving(plan, cube, shape.rank);
    plan::add_recursive_gathering(plan, cube, shape.rank);
  }
  plan::unfold_extra_ranks(plan, cube.extra_ranks(), shape.rank);
  return plan;
}

// 2 log2 N alpha + 2 (N-1)/N n beta + (N-1)/N n gamma for a power of two; extra ranks add two whole vectors.
double seconds(const Shape& shape, const Load& load) {
  const double corners = std::bit_floor(shape.size), levels = std::log2(corners);
  const double share = load.bytes * (corners - 1) / corners;
  const LinkCost& link = load.link;
  const double extra_ranks =
      2 * (link.alpha_s + load.bytes * link.beta_s_per_byte) + load.bytes * link.gamma_s_per_byte;
  return 2 * levels * link.alpha_s + 2 * share * link.beta_s_per_byte + share * link.gamma_s_per_byte +
         (corners < shape.size ? extra_ranks : 0);
}

}  // namespace

extern constinit const Algorithm halving_doubling{
    .name = "halving_doubling",
    .summary = "Exchanges halves, quarters, ... and back: fewest bytes with 2 log2 N latencies",
    .source = "Rabenseifner 2004; MG-WFBP Table II",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .tiles = [](const Shape& shape) { return std::has_single_bit(shape.size); },  // extra ranks come first and last
};

}  // namespace syncopate::collective::algorithm
