// Tile: a plan for a long vector becomes many overlapping plans for short pieces of it.
#include "collective/plan/tile.hpp"

#include <algorithm>
#include <map>

#include "transport/transport.hpp"

namespace syncopate::collective::plan {

namespace {

// A chunk is one frame between ranks that share memory. With a lead of two rounds, two or three tiles are in progress.
// Measured: all-reduce of 16 MiB, 2 cores with 2 MiB of second-level cache each; ms for chunks of 32, 64, 128 KiB.
//   group's memory, pairwise_exchange: 3 ranks 2.6, 2.4, 2.3; 4 ranks 3.8, 2.3, 2.4; 8 ranks 11.4, 9.2, 9.3
//   own memory: 2 ranks (same plan for all algorithms) -, 1.81, 1.99; 4 ranks, halving_doubling: 5.4, 5.6, 6.7
// A lead of one round is up to 20 % slower in own memory; longer leads make no difference.
constexpr std::size_t kChunk = transport::kMemoryFrames.longest;
constexpr std::size_t kMostTiles = 4096;
constexpr std::uint32_t kLead = 2;

struct Placed {
  std::uint64_t key = 0;
  std::uint32_t tile = 0;
  std::uint32_t step = 0;
};

/// The index of each step on its route; sender and receiver count alike.
std::vector<std::uint32_t> rounds_of(const Plan& plan) {
  std::map<std::pair<bool, std::uint32_t>, std::uint32_t> seen;
  std::vector<std::uint32_t> rounds;
  for (const PlanStep& step : plan.steps) rounds.push_back(seen[{step.act == Act::send, step.peer}]++);
  return rounds;
}

}  // namespace

Plan tiled(const Plan& plan, std::uint32_t tiles) {
  if (tiles <= 1) return plan;
  const std::vector<std::uint32_t> rounds = rounds_of(plan);
  std::vector<Placed> order;
  for (std::uint32_t tile = 0; tile < tiles; ++tile)
    for (std::uint32_t step = 0; step < plan.steps.size(); ++step)
      order.push_back({std::uint64_t{tile} * kLead + rounds[step], tile, step});
  std::ranges::stable_sort(
      order, [](const Placed& a, const Placed& b) { return a.key != b.key ? a.key < b.key : a.tile > b.tile; });
  Plan result{.chunks = plan.chunks * tiles, .steps = {}};
  for (const Placed& placed : order) {
    PlanStep step = plan.steps[placed.step];
    step.first_chunk += placed.tile * plan.chunks;
    result.steps.push_back(step);
  }
  return result;
}

std::uint32_t tiles_for(std::size_t bytes, int ranks) {
  const auto size = static_cast<std::size_t>(ranks);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes / (size * kChunk), 1, kMostTiles));
}

}  // namespace syncopate::collective::plan
