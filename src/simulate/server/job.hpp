// Job: workers and servers of a scene in virtual time, under training's consistency rule.
#pragma once

#include <vector>

#include "simulate/server/scene.hpp"
#include "simulate/workload.hpp"

namespace syncopate::simulate::server {

struct Travelled {
  double pushed_bytes = 0, pulled_bytes = 0;  ///< sums over all workers
  double pushes = 0;
};

struct Course {
  std::vector<double> ended_s;       ///< by step: the time at which the slowest worker ended its backward pass
  std::vector<Travelled> travelled;  ///< bytes sent by then
};

/// Runs `steps` steps of every worker, as TableWorker does: at most one request per block is in progress; updates add
/// up until the rule lets them leave; a worker that waits sends the requests that the rule then demands.
[[nodiscard]] Course run_job(const Scene& scene, const Workload& workload, const Ports::Links& links, int steps);

}  // namespace syncopate::simulate::server
