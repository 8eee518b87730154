// Program: finds, chunk by chunk, the earlier steps that each step of a plan must wait for.
#include "collective/plan/program.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

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

namespace {

/// The last steps that used one chunk.
struct ChunkHistory {
  std::optional<std::uint32_t> writer;
  std::vector<std::uint32_t> readers;  ///< since the last write
};

void add_to_route(std::vector<Route>& routes, std::uint32_t peer, std::uint32_t step) {
  auto route = std::ranges::find(routes, peer, &Route::peer);
  if (route == routes.end()) route = routes.insert(routes.end(), Route{peer, {}});
  route->steps.push_back(step);
}

void touch(ChunkHistory& chunk, const PlanStep& step, std::uint32_t index, std::vector<std::uint32_t>& waits) {
  if (chunk.writer) waits.push_back(*chunk.writer);
  if (step.act == Act::send) {
    chunk.readers.push_back(index);
    return;
  }
  waits.insert(waits.end(), chunk.readers.begin(), chunk.readers.end());
  chunk.readers.clear();
  chunk.writer = index;
}

bool same_run(const PlanStep& a, const PlanStep& b) {
  return a.first_chunk == b.first_chunk && a.chunk_count == b.chunk_count;
}

/// The last step with each (peer, first chunk, number of chunks).
using LastOfRun = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>;

/// The sum that an arrival is added to returns with the next send of the same run to the same peer.
void find_return(Program& program, const std::vector<PlanStep>& steps, std::uint32_t index, LastOfRun& last) {
  const PlanStep& step = steps[index];
  program.returns.emplace_back();
  const auto [known, is_first] = last.try_emplace({step.peer, step.first_chunk, step.chunk_count}, index);
  const std::uint32_t before = std::exchange(known->second, index);
  if (is_first || step.act != Act::send || steps[before].act != Act::receive_reduce) return;
  program.returns[before] = {index, program.waits[index] == std::vector{before}};
}

void find_loan(Program& program, const std::vector<PlanStep>& steps, std::uint32_t index) {
  const PlanStep& step = steps[index];
  program.lends.push_back(false);
  if (step.act != Act::receive) return;
  std::vector<std::uint32_t> sends = program.waits[index];
  std::erase_if(sends, [&](std::uint32_t before) { return steps[before].act != Act::send; });
  if (sends.size() == 1 && steps[sends[0]].peer == step.peer && same_run(steps[sends[0]], step))
    program.lends[sends[0]] = true;
}

}  // namespace

Program compile(Plan plan) {
  Program program;
  std::vector<ChunkHistory> chunks(plan.chunks);
  LastOfRun last;
  for (std::uint32_t index = 0; index < plan.steps.size(); ++index) {
    const PlanStep& step = plan.steps[index];
    std::vector<std::uint32_t> waits;
    for (std::uint32_t c = step.first_chunk; c < step.first_chunk + step.chunk_count; ++c)
      touch(chunks[c], step, index, waits);
    std::ranges::sort(waits);
    waits.erase(std::ranges::unique(waits).begin(), waits.end());
    program.waits.push_back(std::move(waits));
    find_return(program, plan.steps, index, last);
    find_loan(program, plan.steps, index);
    add_to_route(step.act == Act::send ? program.outgoing : program.incoming, step.peer, index);
  }
  program.plan = std::move(plan);
  return program;
}

}  // namespace syncopate::collective::plan
