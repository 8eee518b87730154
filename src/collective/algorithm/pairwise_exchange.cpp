// Pairwise exchange: in step s, rank r sends its data for rank r + s there, and receives from rank r - s.
// Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005,
// section 4.3 (all-to-all of long messages) and 4.2 (reduce-scatter); the all-gather of an all-reduce works alike.
//
//   N = 4, step 1:  0 -> 1 -> 2 -> 3 -> 0      step 2:  0 <-> 2, 1 <-> 3      step 3:  0 -> 3 -> 2 -> 1 -> 0
//
// No step waits for the data of another. So a phase costs one latency if latencies overlap, as between sockets. The
// owner of a part receives the contributions of all other ranks. If ranks access each other's vectors, it writes the
// sum to all of them while it adds, so that the second phase of an all-reduce moves no bytes.
#include "collective/algorithm.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) {
  return plan::swaps(collective) || collective == Collective::allreduce || collective == Collective::reduce_scatter ||
         collective == Collective::allgather || collective == Collective::allgather_v;
}

struct Peers {
  std::uint32_t to = 0, from = 0;
};
Peers peers_in(const Shape& shape, std::uint32_t step) {
  return {(shape.rank + step) % shape.size, (shape.rank + shape.size - step) % shape.size};
}

Plan build(const Shape& shape) {
  const bool swaps = plan::swaps(shape.collective);
  Plan plan{.chunks = swaps ? 2 * shape.size : shape.size, .steps = {}};
  if (swaps || plan::reduces(shape.collective))
    for (std::uint32_t step = 1; step < shape.size; ++step) {
      const auto [to, from] = peers_in(shape, step);
      plan.steps.push_back({Act::send, to, to, 1, false});
      plan.steps.push_back(swaps ? PlanStep{Act::receive, from, shape.size + from, 1, false}
                                 : PlanStep{Act::receive_reduce, from, shape.rank, 1, step + 1 == shape.size});
    }
  if (swaps || shape.collective == Collective::reduce_scatter) return plan;
  for (std::uint32_t step = 1; step < shape.size; ++step) {
    const auto [to, from] = peers_in(shape, step);
    plan.steps.push_back({Act::send, to, shape.rank, 1, false});
    plan.steps.push_back({Act::receive, from, from, 1, false});
  }
  return plan;
}

// One phase: (N-1) alpha + (N-1)/N n beta; a reducing one (N-1)/N n gamma more. An all-reduce has two phases; if ranks
// access each other's vectors, the second moves no bytes.
double seconds(const Shape& shape, const Load& load) {
  const double phases = shape.collective == Collective::allreduce ? 2 : 1, steps = shape.size - 1.0;
  const double moves = load.link.medium == Medium::vectors ? 1 : phases;
  const double part = load.bytes / shape.size, reduced = plan::reduces(shape.collective) ? part : 0;
  return steps *
         (phases * load.link.alpha_s + moves * part * load.link.beta_s_per_byte + reduced * load.link.gamma_s_per_byte);
}

}  // namespace

extern constinit const Algorithm pairwise_exchange{
    .name = "pairwise_exchange",
    .summary =
        "Each rank sends directly to rank + s and receives from rank - s, for every s: no step waits for another",
    .source = "Thakur, Rabenseifner & Gropp 2005, sections 4.2, 4.3",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .tiles = [](const Shape&) { return true; },
};

}  // namespace syncopate::collective::algorithm
