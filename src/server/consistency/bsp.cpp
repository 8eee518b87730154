// BSP: bulk synchronous parallelism: each step computes with every worker's updates of all earlier steps.
// Valiant, "A bridging model for parallel computation", CACM 33, 1990; thesis, section 2.3.2 and figure 2.3a.
//
//   worker 0   |==0==|  w |==1==|  w |==2==|      s = 0: fetched >= own
//   worker 1   |====0====||====1====||====2       w: waits for the slowest
//
// Traffic: one update up and one copy of the weights down in each step. Training is that of synchronous SGD.
#include "server/consistency.hpp"

namespace syncopate::server::consistency {

namespace {

Rule rule(std::span<const double> /*numbers*/) { return {.staleness = 0}; }

}  // namespace

extern constinit const Consistency bsp{
    .name = "bsp",
    .summary = "Lockstep: each step computes with all updates of the steps before it",
    .source = "Valiant 1990; modular parameter server thesis, section 2.3.2",
    .rule = rule,
};

}  // namespace syncopate::server::consistency
