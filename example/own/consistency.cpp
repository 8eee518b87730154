// Your own consistency model: a barrier of K of N workers, `quorum:K,S`, at most S steps beyond the slowest worker.
//
//   K = 2 of 3:  step c begins when two workers have ended c - 1; the third one's updates count when they arrive
#include "syncopate/consistency.hpp"

#include <algorithm>
#include <functional>

#include "laws.hpp"
#include "workers.hpp"

using namespace syncopate;
using namespace syncopate::server;

/// Servers call the hook with the clocks of all workers when a worker waits. The slowest worker never waits, because
/// it has all updates of the steps before its own (staleness 0).
Rule quorum(std::span<const double> numbers) {
  const auto k = static_cast<std::size_t>(numbers[0]);
  const auto most = static_cast<Clock>(numbers[1]);
  return {.staleness = 0, .last_step = [=](const ServerView& view) {
            std::vector<Clock> clocks(view.clocks.begin(), view.clocks.end());
            std::ranges::sort(clocks, std::greater());
            return std::min(clocks[std::min(k, clocks.size()) - 1], view.least + most);
          }};
}

constexpr Parameter kParameters[] = {{.name = "workers", .most = 4096, .whole = true},
                                     {.name = "steps", .most = 1e6, .whole = true}};
constexpr Consistency kQuorum = {.name = "quorum", .parameter = "2,5", .parameters = kParameters, .rule = quorum};

int main() {
  if (!holds(check_consistency(kQuorum, {.parameter = "2,10", .bound = 10}))) return 1;
  return train_on_workers({.catalogue = Catalogue::standard().with(kQuorum), .consistency = "quorum:2,10"});
}
