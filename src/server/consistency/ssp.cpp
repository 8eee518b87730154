// SSP: stale synchronous parallelism: a worker is at most S steps ahead of the slowest worker's updates in its weights.
// Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013, section 2;
// thesis, section 2.3.2 and code 4.4, where updates also accumulate and are sent only when their worker must fetch.
//
//   own         0  1  2  3  4  5  6  7          s = 3, equal speeds: fetched is 0, then 4, then 8
//   must fetch              x           x       a step computes with updates of at least own - s steps of each worker
//
// Traffic: workers of equal speed exchange once in s + 1 steps. Others wait for a worker that is s steps behind; it
// then exchanges as often as they wait.
#include "server/consistency.hpp"

namespace syncopate::server::consistency {

namespace {

constexpr Parameter kStaleness[] = {{"staleness", 0, 1'000'000, true, true}};

Rule rule(std::span<const double> numbers) { return {.staleness = static_cast<Clock>(numbers[0])}; }

}  // namespace

extern constinit const Consistency ssp{
    .name = "ssp",
    .summary = "Weights miss at most the last S steps; updates add up meanwhile: `ssp:S`",
    .source = "Ho et al., NIPS 2013; modular parameter server thesis, code 4.4",
    .parameter = "3",
    .parameters = kStaleness,
    .rule = rule,
};

}  // namespace syncopate::server::consistency
