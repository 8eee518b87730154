// Sharded: each rank updates its shard of the weights, and gets the shards of the others.
// Rajbhandari et al., SC 2020 (ZeRO, stages 1 and 2); Zhang et al., ICDCS 2023 (DeAR: an all-reduce in two halves).
//
//   backward   l = L..1:  reduce-scatter g_l;  w_l[shard] = update(w_l[shard], g_l[shard])   overlaps the backward pass
//   forward    l = 1..L:  all-gather w_l                                                     overlaps the forward pass
//   bytes per port: (N-1)/N n for each half; a rank computes and keeps 1/N of the optimizer's state
#include <cstring>

#include "sync/cut.hpp"

namespace syncopate::sync::exchange {

namespace {

constexpr Collective kHalves[] = {Collective::reduce_scatter, Collective::allgather};

RowShare share(Group& group) {
  return {.index = static_cast<std::size_t>(group.rank()),
          .count = static_cast<std::size_t>(group.size()),
          .is_shard = true};
}

std::size_t own(const ExchangeContext& context) { return static_cast<std::size_t>(context.group.rank()); }

void narrow(const ExchangeContext& context, const NarrowedTensors& gradients) {
  const Packing packing(gradients);
  const Buffer packed = packing.memory(context.group, gradients.cut.parts());
  packing.pack(gradients.packed.get());
  run(context.group, Collective::reduce_scatter, packed,
      {.op = ReduceOp::average, .algorithm = context.algorithm, .name = context.name});
  packing.place(gradients.part, own(context), gradients.packed.get());
}

/// After `narrow` no other rank has anything of a shard.
compress::Answer combine(const ExchangeContext& /*context*/, const compress::Round& /*round*/) { return {}; }

/// A gradient outside this rank's shard is spent: the next step adds to zero.
void widen(const ExchangeContext& context, const NarrowedTensors& gradients) {
  for (const compress::Tensor& tensor : gradients.whole)
    std::memset(tensor.values.data, 0, tensor.values.bytes().size());
  Packing(gradients).unpack(gradients.packed.get(), own(context));
}

void gather_weights(const ExchangeContext& context, const NarrowedTensors& weights) {
  const Packing packing(weights);
  const Buffer packed = packing.memory(context.group, weights.cut.parts());
  packing.pack(weights.packed.get(), own(context));
  run(context.group, Collective::allgather, packed, {.algorithm = context.algorithm, .name = context.name});
  packing.unpack(weights.packed.get());
}

}  // namespace

extern constinit const Exchange sharded{
    .name = "sharded",
    .summary = "Each rank updates its shard of the weights between a reduce-scatter and an all-gather",
    .source = "Rajbhandari et al., SC 2020 (ZeRO); Zhang et al., ICDCS 2023 (DeAR)",
    .serves = {.additive = true},
    .codes = false,
    .collectives = kHalves,
    .combine = combine,
    .share = share,
    .narrowing = Narrowing{.narrow = narrow, .widen = widen, .over = Scope::group},
    .ending = GathersWeights{gather_weights},
};

}  // namespace syncopate::sync::exchange
