// No exchange: every rank keeps its own gradient and trains alone; the ceiling of every comparison.
// The "no communication" row of a benchmark: the same program, the same load on the machine, no bytes.
//
//   g = g_rank
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {

bool accepts(compress::Combine /*combine*/) { return true; }

void combine(Group& /*group*/, const compress::Packet& /*packet*/, const ExchangeOptions& /*options*/) {}

}  // namespace

extern constinit const Exchange none{
    .name = "none",
    .summary = "Nothing is exchanged: every rank trains alone, the ceiling of comparisons",
    .source = "the baseline",
    .accepts = accepts,
    .combine = combine,
};

}  // namespace syncopate::sync::exchange
