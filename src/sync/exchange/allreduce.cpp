// All-reduce: every rank ends with the average of all packets.
// Synchronous data-parallel SGD, MG-WFBP equation 2: the update is the mean gradient over N workers.
//
//   g = (1/N) (g_0 + g_1 + ... + g_{N-1}),  the same bits on every rank
#include "collective/state.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {

bool accepts(compress::Combine combine) { return combine == compress::Combine::additive; }

// The communication thread does not stay awake while it waits: the backward pass needs the core.
Outcome combine(Group& group, const compress::Packet& packet, const ExchangeOptions& options) {
  const CollectiveOptions collective{.op = ReduceOp::average, .algorithm = options.algorithm, .name = options.name};
  group.impl().run({Collective::allreduce, packet.payload, collective, transport::Patience{}});
  return Outcome::gradient;
}

}  // namespace

extern constinit const Exchange allreduce{
    .name = "allreduce",
    .summary = "Averages by an all-reduce: synchronous data-parallel SGD",
    .source = "MG-WFBP equation 2",
    .accepts = accepts,
    .combine = combine,
};

}  // namespace syncopate::sync::exchange
