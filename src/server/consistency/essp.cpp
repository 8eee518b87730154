// ESSP: eager stale synchronous parallelism: SSP whose servers send new weights before a worker asks for them.
// Dai et al., "High-performance distributed ML at scale through parameter server consistency models", AAAI 2015,
// section 4 (ESSP): the bound of SSP, with weights that are usually fresher than it requires.
//
//   worker 0   |==0==|==1==|==2==|==3==|     its update leaves after each step, as with adaptive:0,S
//                  w     w     w             and weights come within a step, when updates of others reach the server
//
// Traffic: one update up and one copy of the weights down in each step, and further copies as long as there are
// changes, one after the other.
#include "server/consistency.hpp"

namespace syncopate::server::consistency {

namespace {

constexpr Parameter kStaleness[] = {{"staleness", 0, 1'000'000, true, true}};

Rule rule(std::span<const double> numbers) {
  return {.staleness = static_cast<Clock>(numbers[0]),
          .travels_early = [](const ClockView& /*clocks*/) { return true; },
          .sends_unasked = [](const ServerView& /*view*/) { return true; }};
}

}  // namespace

extern constinit const Consistency essp{
    .name = "essp",
    .summary = "Updates travel every step, within staleness S; servers send new weights before a worker asks: `essp:S`",
    .source = "Dai et al., AAAI 2015",
    .parameter = "3",
    .parameters = kStaleness,
    .rule = rule,
};

}  // namespace syncopate::server::consistency
