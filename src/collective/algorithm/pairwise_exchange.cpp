// Pairwise exchange: in step s a rank sends its part for rank r + s and receives that of rank r - s.
// Thakur, Rabenseifner & Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005,
// section 4.3 (all-to-all of long messages).
//
//   N = 4, step 1:  0 -> 1 -> 2 -> 3 -> 0     step 2:  0 -> 2, 1 -> 3, 2 -> 0, 3 -> 1     step 3:  0 -> 3 -> 2 -> 1 ->
//   0
#include "collective/algorithm.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) { return collective == Collective::alltoall; }

Plan build(const Shape& shape) {
  const std::uint32_t size = shape.size;
  Plan plan{.chunks = 2 * size, .steps = {}};
  for (std::uint32_t step = 1; step < size; ++step) {
    const std::uint32_t to = (shape.rank + step) % size, from = (shape.rank + size - step) % size;
    plan.steps.push_back({Act::send, to, to, 1, false});
    plan.steps.push_back({Act::receive, from, size + from, 1, false});
  }
  return plan;
}

// (N-1) alpha + (N-1)/N n beta
double seconds(const Shape& shape, const Load& load) {
  const double steps = shape.size - 1.0;
  return steps * (load.link.alpha_s + load.bytes / shape.size * load.link.beta_s_per_byte);
}

}  // namespace

extern constinit const Algorithm pairwise_exchange{
    .name = "pairwise_exchange",
    .summary = "Everyone sends to rank + s and receives from rank - s, for every s: all ports busy, no port twice",
    .source = "Thakur, Rabenseifner & Gropp 2005, section 4.3",
    .offers = offers,
    .build = build,
    .seconds = seconds,
};

}  // namespace syncopate::collective::algorithm
