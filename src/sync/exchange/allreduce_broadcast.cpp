// All-reduce, and every k steps a broadcast of the weights, which removes drift between ranks.
// Linear-pipeline paper, Algorithm 3 with k = 5. In the paper the update rounds differently on different devices; here
// results are bitwise equal on equal machines, so k matters only where machines differ.
//
//   every step:          g = (1/N) sum_r g_r on every rank;  w_r = update(w_r, g)
//   every k-th step:     w_r = w_0
//   bytes per port: those of the all-reduce, and n/k for the broadcast
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {

constexpr Collective kReducing[] = {Collective::allreduce};

/// `algorithm` was chosen for the all-reduce; if it offers no broadcast, "auto" is used.
void broadcast_weights(const ExchangeContext& context, Buffer weights) {
  run(context.group, Collective::broadcast, weights,
      {.root = kRoot,
       .algorithm = std::string(algorithm_for(Collective::broadcast, context.algorithm)),
       .name = context.name});
}

}  // namespace

extern constinit const Exchange allreduce_broadcast{
    .name = "allreduce_broadcast",
    .summary = "Averages by an all-reduce; rank 0's weights are broadcast every k steps (broadcast_every)",
    .source = "Linear-pipeline paper, Algorithm 3",
    .serves = {.additive = true, .gather = true, .scatter = true, .mergeable = true},
    .collectives = kReducing,
    .combine = combine_among_all,
    .ending = BroadcastsWeights{.updater = Updater::every_rank, .broadcast = broadcast_weights, .always = false},
};

}  // namespace syncopate::sync::exchange
