// Program: finds, chunk by chunk, the earlier steps that each step of a plan must wait for.
#include "collective/plan/program.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace syncopate::collective::plan {

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
