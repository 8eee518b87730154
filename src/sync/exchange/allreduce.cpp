// All-reduce: every rank ends with the average of all packets.
// Synchronous data-parallel SGD, MG-WFBP equation 2: the update is the mean gradient over N workers.
//
//   g = (1/N) (g_0 + g_1 + ... + g_{N-1}),  the same bits on every rank
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {

bool accepts(compress::Combine combine) { return combine == compress::Combine::additive; }

void combine(Group& group, const compress::Packet& packet, const ExchangeOptions& options) {
  carry_out(group, Collective::allreduce, packet.payload,
            {.op = ReduceOp::average, .algorithm = options.algorithm, .name = options.name});
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
