// Workload: stateless noise, so that every policy and every number of ranks has the same slow layers.
#include "simulate/workload.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace syncopate::simulate {

namespace {

/// SplitMix64's finaliser (Steele, Lea & Flood, OOPSLA 2014): a bijection that hides patterns in its argument.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// A uniform number in (0, 1].
double uniform(std::uint64_t key) { return (static_cast<double>(mixed(key) >> 11) + 1) * 0x1p-53; }

/// exp(s z - s^2/2) has mean 1; s is chosen so that the standard deviation is `noise` (z by Box-Muller).
double factor(double noise, std::uint64_t key) {
  if (noise == 0) return 1;
  const double variance = std::log1p(noise * noise);
  const double z = std::sqrt(-2 * std::log(uniform(key))) * std::cos(2 * std::numbers::pi * uniform(~key));
  return std::exp(std::sqrt(variance) * z - variance / 2);
}

}  // namespace

Workload::Workload(const schedule::Timeline& timeline, SimulateOptions options)
    : timeline_(timeline), options_(std::move(options)) {
  for (const schedule::Layer& layer : timeline.layers) backward_s_ += layer.backward_s;
}

Work Workload::of(std::uint64_t step, std::uint32_t rank) const {
  double slowness = 1;
  for (const Handicap& slow : options_.slow_ranks)
    if (slow.which == static_cast<int>(rank)) slowness *= slow.factor;
  Work work;
  const std::uint64_t key = mixed(mixed(options_.seed) ^ mixed(step << 32 | rank));
  for (std::size_t layer = 0; layer < timeline_.layers.size(); ++layer) {
    const double backward_s = timeline_.layers[layer].backward_s;
    const double share = backward_s_ > 0 ? backward_s / backward_s_ : 0;
    work.forward_s.push_back(timeline_.forward_s * share * slowness * factor(options_.noise, key ^ mixed(2 * layer)));
    work.backward_s.push_back(backward_s * slowness * factor(options_.noise, key ^ mixed(2 * layer + 1)));
  }
  return work;
}

}  // namespace syncopate::simulate
