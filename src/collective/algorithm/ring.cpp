// Ring: chunks travel round the ring, each rank sending to its right neighbour only; moves the fewest bytes possible.
// Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009;
// MG-WFBP Table II, row "ring".
//
//   reduce-scatter, N = 4:  step 0   0 -3-> 1 -0-> 2 -1-> 3 -2-> 0     (-c->: chunk c)
//                           step 1   0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
//                           step 2   0 -1-> 1 -2-> 2 -3-> 3 -0-> 0     now rank r owns chunk r
#include "collective/pattern/ring.hpp"

#include "collective/algorithm.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce_scatter ||
         collective == Collective::allgather;
}

void add_reduce_scatter(Plan& plan, std::uint32_t rank, std::uint32_t size) {
  for (std::uint32_t step = 0; step + 1 < size; ++step) {
    const std::uint32_t out = pattern::scattered_chunk(rank, size, step);
    const std::uint32_t in = pattern::scattered_chunk(pattern::previous(rank, size), size, step);
    plan.steps.push_back({Act::send, pattern::next(rank, size), out, 1, false});
    plan.steps.push_back({Act::receive_reduce, pattern::previous(rank, size), in, 1, step + 2 == size});
  }
}

void add_allgather(Plan& plan, std::uint32_t rank, std::uint32_t size) {
  for (std::uint32_t step = 0; step + 1 < size; ++step) {
    const std::uint32_t out = pattern::gathered_chunk(rank, size, step);
    const std::uint32_t in = pattern::gathered_chunk(pattern::previous(rank, size), size, step);
    plan.steps.push_back({Act::send, pattern::next(rank, size), out, 1, false});
    plan.steps.push_back({Act::receive, pattern::previous(rank, size), in, 1, false});
  }
}

Plan build(const Shape& shape) {
  Plan plan{.chunks = shape.size, .steps = {}};
  if (shape.collective != Collective::allgather) add_reduce_scatter(plan, shape.rank, shape.size);
  if (shape.collective != Collective::reduce_scatter) add_allgather(plan, shape.rank, shape.size);
  return plan;
}

// all-reduce: 2 (N-1) alpha + 2 (N-1)/N n beta + (N-1)/N n gamma; the halves have half of the first two terms.
double seconds(Collective collective, double ranks, double bytes, const LinkCost& link) {
  const double phases = collective == Collective::allreduce ? 2 : 1;
  const double reduced = collective == Collective::allgather ? 0 : 1;
  const double share = bytes * (ranks - 1) / ranks;
  return phases * (ranks - 1) * link.alpha_s + phases * share * link.beta_s_per_byte +
         reduced * share * link.gamma_s_per_byte;
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
};

}  // namespace syncopate::collective::algorithm
