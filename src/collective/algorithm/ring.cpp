// Ring: chunks travel round the ring, and each rank sends to its right neighbour only; moves the fewest bytes possible.
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009; MG-WFBP
// Table II, row "ring".
//
//   reduce-scatter, N = 4:  step 0   0 -3-> 1 -0-> 2 -1-> 3 -2-> 0     (-c->: chunk c)
//                           step 1   0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
//                           step 2   0 -1-> 1 -2-> 2 -3-> 3 -0-> 0     now rank r owns chunk r
#include "collective/algorithm.hpp"
#include "collective/plan/compose.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce_scatter ||
         collective == Collective::allgather || collective == Collective::allgather_v;
}

Plan build(const Shape& shape) {
  Plan plan{.chunks = shape.size, .steps = {}};
  const plan::Positions ranks{.at = shape.rank, .size = shape.size};
  if (plan::reduces(shape.collective)) plan::add_ring_reduce_scatter(plan, ranks);
  if (shape.collective != Collective::reduce_scatter) plan::add_ring_gather(plan, ranks);
  return plan;
}

// all-reduce: 2 (N-1) alpha + 2 (N-1)/N n beta + (N-1)/N n gamma; the halves have half of the first two terms.
double seconds(const Shape& shape, const Load& load) {
  const double phases = shape.collective == Collective::allreduce ? 2 : 1, steps = shape.size - 1.0;
  const double share = load.bytes * steps / shape.size, reduced = plan::reduces(shape.collective) ? share : 0;
  return phases * steps * load.link.alpha_s + phases * share * load.link.beta_s_per_byte +
         reduced * load.link.gamma_s_per_byte;
}

}  // namespace

extern constinit const Algorithm ring{
    .name = "ring",
    .summary = "Chunks travel round a ring: fewest bytes per port, 2(N-1) latencies",
    .source = "Patarasuk & Yuan 2009; MG-WFBP Table II",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .steady = true,
    .tiles = [](const Shape&) { return true; },
};

}  // namespace syncopate::collective::algorithm
