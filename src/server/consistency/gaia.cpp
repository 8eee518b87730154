// Gaia: in each step a worker sends those elements of its accumulated update that are significant; others accumulate.
// Hsieh et al., "Gaia: geo-distributed machine learning approaching LAN speeds", NSDI 2017, section 3.3: an element is
// significant if its accumulated update exceeds a share of its weight.
//
//   |u_i| / |w_i|   .004  .03!  .002  .011!      theta = 0.01: the elements with ! travel, the others stay
//
// Here the share is constant; Gaia's falls with the square root of the step. Within staleness S of the slowest worker
// the whole update travels, as with ssp. Traffic up: the significant elements, with coded indices; down: as with tap.
// `adaptive` decides for all elements of a shard together.
#include <cmath>

#include "server/consistency.hpp"

namespace syncopate::server::consistency {

namespace {

constexpr Parameter kParameters[] = {{"significance", 0, 1e6, false, true}, {"staleness", 0, 1'000'000, true, true}};

/// An update of a weight of 0 is significant, and so is one that is not a number.
void significant(float theta, std::span<const float> weights, std::span<const float> update, std::span<float> sent) {
  for (std::size_t i = 0; i < update.size(); ++i)
    sent[i] = std::abs(update[i]) <= theta * std::abs(weights[i]) ? 0 : update[i];
}

Rule rule(std::span<const double> numbers) {
  return {.staleness = static_cast<Clock>(numbers[1]),
          .travels_early = [](const ClockView& /*clocks*/) { return true; },
          .part = [theta = static_cast<float>(numbers[0])](
                      const ClockView& /*clocks*/, std::span<const float> weights, std::span<const float> update,
                      std::span<float> sent) { significant(theta, weights, update, sent); }};
}

}  // namespace

extern constinit const Consistency gaia{
    .name = "gaia",
    .summary =
        "Elements of an update travel when they exceed THETA of their weights, within staleness S: `gaia:THETA,S`",
    .source = "Hsieh et al., NSDI 2017 (Gaia), section 3.3",
    .parameter = "0.01,5",
    .parameters = kParameters,
    .rule = rule,
};

}  // namespace syncopate::server::consistency
