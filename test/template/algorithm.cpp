// Template of a collective algorithm: every rank sends its vector to rank 0, which reduces and returns the result.
// Replace this line by the source: authors, title, venue, equation numbers.
//
//   N = 3:   1 -> 0, 2 -> 0 (reduce);   0 -> 1, 0 -> 2
#include "collective/algorithm.hpp"

namespace syncopate::collective::algorithm {

namespace {

bool offers(Collective collective) { return collective == Collective::allreduce; }

/// The operations of one rank, in order: {operation, peer, first chunk, chunks, whether a reduction is the last one}.
Plan build(const Shape& shape) {
  Plan plan{.chunks = 1, .steps = {}};
  if (shape.rank != 0) {
    plan.steps.push_back({Act::send, 0, 0, 1, false});
    plan.steps.push_back({Act::receive, 0, 0, 1, false});
    return plan;
  }
  for (std::uint32_t peer = 1; peer < shape.size; ++peer)
    plan.steps.push_back({Act::receive_reduce, peer, 0, 1, peer + 1 == shape.size});
  for (std::uint32_t peer = 1; peer < shape.size; ++peer) plan.steps.push_back({Act::send, peer, 0, 1, false});
  return plan;
}

// All messages pass the port of rank 0: (N - 1)(alpha + n beta + n gamma) up, (N - 1)(alpha + n beta) down.
double seconds(const Shape& shape, const Load& load) {
  const double messages = shape.size - 1.0;
  const double message = load.link.alpha_s + load.bytes * load.link.beta_s_per_byte;
  return messages * (2 * message + load.bytes * load.link.gamma_s_per_byte);
}

}  // namespace

extern constinit const Algorithm star{
    .name = "star",
    .summary = "Rank 0 reduces all vectors and returns the result: 2 (N - 1) messages at one port",
    .source = "the template of docs/extending.md",
    .offers = offers,
    .build = build,
    .seconds = seconds,
};

}  // namespace syncopate::collective::algorithm
