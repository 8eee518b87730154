// Program: finding, chunk by chunk, what each step of a plan must wait for.
#include "collective/program.hpp"

#include <algorithm>
#include <optional>

namespace syncopate::collective {

namespace {

/// What happened last to one chunk.
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

/// The last writer of a run before it is sent back where it came from; nothing else lies between the two.
void find_reply(Program& program, const std::vector<PlanStep>& steps, std::uint32_t index) {
  const PlanStep& step = steps[index];
  program.replies.push_back(Program::kNoReply);
  if (step.act != Act::send || program.waits[index].size() != 1) return;
  const std::uint32_t before = program.waits[index].front();
  const PlanStep& arrival = steps[before];
  if (arrival.act == Act::receive_reduce && arrival.peer == step.peer && same_run(arrival, step))
    program.replies[before] = index;
}

}  // namespace

Program compile(Plan plan) {
  Program program;
  std::vector<ChunkHistory> chunks(plan.chunks);
  for (std::uint32_t index = 0; index < plan.steps.size(); ++index) {
    const PlanStep& step = plan.steps[index];
    std::vector<std::uint32_t> waits;
    for (std::uint32_t c = step.first_chunk; c < step.first_chunk + step.chunk_count; ++c)
      touch(chunks[c], step, index, waits);
    std::ranges::sort(waits);
    waits.erase(std::ranges::unique(waits).begin(), waits.end());
    program.waits.push_back(std::move(waits));
    find_reply(program, plan.steps, index);
    add_to_route(step.act == Act::send ? program.outgoing : program.incoming, step.peer, index);
  }
  program.plan = std::move(plan);
  return program;
}

}  // namespace syncopate::collective
