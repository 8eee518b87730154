// Reduce and broadcast: gradients are reduced to the root, which updates the weights and broadcasts them.
// Linear-pipeline paper, Algorithm 2; overlapped with both passes it is Algorithm 1.
//
//   backward   l = L..1:  root: g_l = (1/N) sum_r g_l,r;  w_l = update(w_l, g_l)   overlaps the reduce of l+1
//   forward    l = 1..L:  w_l of the root on every rank                            overlaps the broadcast of l+1
//   bytes per port: n for the reduce, n for the broadcast; only the root holds and computes the optimizer's state
//   Sparse packets are gathered on the root, whose port takes all of them, or merged on the way there.
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {

constexpr Collective kRooted[] = {Collective::reduce, Collective::broadcast};

compress::Answer combine(const ExchangeContext& context, const compress::Round& round) {
  if (round.combine != compress::Combine::additive) return combine_at_root(context, round);
  run(context.group, Collective::reduce, round.payload,
      {.op = ReduceOp::average, .root = kRoot, .algorithm = context.algorithm, .name = context.name});
  return {};
}

void broadcast_weights(const ExchangeContext& context, Buffer weights) {
  run(context.group, Collective::broadcast, weights,
      {.root = kRoot, .algorithm = context.algorithm, .name = context.name});
}

}  // namespace

extern constinit const Exchange reduce_broadcast{
    .name = "reduce_broadcast",
    .summary = "Reduces gradients to rank 0, which updates the weights and broadcasts them",
    .source = "Linear-pipeline paper, Algorithms 1 and 2",
    .serves = {.additive = true, .gather = true, .mergeable = true},
    .answers_everywhere = false,
    .collectives = kRooted,
    .combine = combine,
    .ending = BroadcastsWeights{.updater = Updater::root, .broadcast = broadcast_weights},
};

}  // namespace syncopate::sync::exchange
