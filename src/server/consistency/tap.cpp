// TAP: total asynchronous parallelism: no worker waits, and the age of a copy of the weights is unbounded.
// Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.1; thesis, section 2.3.2 and figure 2.3b.
//
//   worker 0   |==0==|==1==|==2==|==3==|==4==|     no bound; a worker that has asked for weights goes on with those
//   worker 1   |====0====|====1====|====2====      that it has until the others are there
//
// Traffic: one update up and one copy of the weights down in each step.
#include "server/consistency.hpp"

namespace syncopate::server::consistency {

namespace {

Rule rule(std::span<const double> /*numbers*/) {
  return {.staleness = std::nullopt, .travels_early = [](const ClockView& /*clocks*/) { return true; }};
}

}  // namespace

extern constinit const Consistency tap{
    .name = "tap",
    .summary = "No worker waits: updates travel every step, the age of the weights is unbounded",
    .source = "Dean et al. 2012 (Downpour SGD); modular parameter server thesis, section 2.3.2",
    .rule = rule,
};

}  // namespace syncopate::server::consistency
