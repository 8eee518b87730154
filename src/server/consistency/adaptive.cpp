// Adaptive: an accumulated update is sent when it is significant, at the latest when SSP's bound requires it.
// Hsieh et al., "Gaia: geo-distributed machine learning approaching LAN speeds", NSDI 2017, section 3.3 (significance
// filter); thesis, section 2.3.2 and figure 2.3d. Here the criterion is per shard: |accumulated| / |weights|.
//
//   |u| / |w|   .004  .008  .013! .003  .007  .011!      theta = 0.01: travels at each !
//
// Traffic: between that of ssp:S (no update is significant) and that of bsp (each is). A significance that is NaN, for
// example with weights that are all zero, counts as significant.
#include "server/consistency.hpp"

namespace syncopate::server::consistency {

namespace {

constexpr Parameter kParameters[] = {{"significance", 0, 1e6, false, true}, {"staleness", 0, 1'000'000, true, true}};

Rule rule(std::span<const double> numbers) {
  return {.staleness = static_cast<Clock>(numbers[1]),
          .travels_early = [theta = numbers[0]](const ClockView& clocks) { return !(clocks.significance <= theta); }};
}

}  // namespace

extern constinit const Consistency adaptive{
    .name = "adaptive",
    .summary = "Updates travel when their size over the weights' exceeds THETA, within staleness S: `adaptive:THETA,S`",
    .source = "Hsieh et al., NSDI 2017 (Gaia); modular parameter server thesis, section 2.3.2",
    .parameter = "0.01,5",
    .parameters = kParameters,
    .rule = rule,
};

}  // namespace syncopate::server::consistency
