// All-reduce: every rank ends with the average of all packets.
// Synchronous data-parallel SGD, MG-WFBP equation 2: the update is the mean gradient over N workers.
//
//   g = (1/N) (g_0 + g_1 + ... + g_{N-1}),  the same bits on every rank
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {
constexpr Collective kReducing[] = {Collective::allreduce};
}  // namespace

extern constinit const Exchange allreduce{
    .name = "allreduce",
    .summary = "Averages by an all-reduce: synchronous data-parallel SGD",
    .source = "MG-WFBP equation 2",
    .serves = {.additive = true, .gather = true, .scatter = true, .mergeable = true},
    .collectives = kReducing,
    .combine = combine_among_all,
};

}  // namespace syncopate::sync::exchange
