// All-reduce with a broadcast of the weights every k steps: whatever makes ranks drift apart is removed.
// Linear-pipeline paper, Algorithm 3 with k = 5. The paper's drift is a rounding of the update that differs between
// devices; here results are equal bit for bit on equal machines, so that k matters where machines differ.
//
//   every step:          g = (1/N) sum_r g_r on every rank;  w_r = update(w_r, g)
//   every k-th step:     w_r = w_0
//   bytes per port: those of the all-reduce, and n/k for the broadcast
#include "collective/algorithm.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {

bool accepts(compress::Combine combine) { return combine == compress::Combine::additive; }

void combine(Group& group, const compress::Packet& packet, const ExchangeOptions& options) {
  carry_out(group, Collective::allreduce, packet.payload,
            {.op = ReduceOp::average, .algorithm = options.algorithm, .name = options.name});
}

/// `algorithm` was chosen for the all-reduce; one that offers no broadcast leaves that to the best.
std::string broadcasting(const std::string& algorithm) {
  for (const collective::Algorithm* entry : collective::algorithms())
    if (entry->name == algorithm && entry->offers(Collective::broadcast)) return algorithm;
  return "auto";
}

void spread(Group& group, Buffer weights, const ExchangeOptions& options) {
  carry_out(group, Collective::broadcast, weights,
            {.root = kRoot, .algorithm = broadcasting(options.algorithm), .name = options.name});
}

}  // namespace

extern constinit const Exchange allreduce_broadcast{
    .name = "allreduce_broadcast",
    .summary = "Averages by an all-reduce; rank 0's weights are broadcast every k steps (broadcast_every)",
    .source = "Linear-pipeline paper, Algorithm 3",
    .updater = Updater::every_rank,
    .accepts = accepts,
    .combine = combine,
    .spread = spread,
    .spreads_always = false,
};

}  // namespace syncopate::sync::exchange
