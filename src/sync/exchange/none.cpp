// No exchange: every rank keeps its own gradient and trains alone; the ceiling of every comparison.
// The "no communication" row of a benchmark: the same program and the same load on the machine, but no bytes.
//
//   g = g_rank
#include <algorithm>

#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

namespace {

/// Answers every round with this rank's own packet, as in a group of one rank.
compress::Answer combine(const ExchangeContext& context, const compress::Round& round) {
  if (round.combine == compress::Combine::additive) return {};
  const std::size_t length = round.payload.bytes().size();
  std::ranges::copy(round.payload.bytes(), context.memory.take(context.group, {&length, 1}).begin());
  return context.memory.answer();
}

RowShare share(Group& /*group*/) { return {}; }

}  // namespace

extern constinit const Exchange none{
    .name = "none",
    .summary = "Nothing is exchanged: every rank trains alone, the ceiling of comparisons",
    .source = "the baseline",
    .serves = {.additive = true, .gather = true, .scatter = true, .mergeable = true},
    .combine = combine,
    .share = share,
};

}  // namespace syncopate::sync::exchange
