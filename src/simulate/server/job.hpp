// Job: workers and servers of a scene in virtual time, under the consistency rule that training takes.
#pragma once

#include <vector>

#include "simulate/server/scene.hpp"
#include "simulate/workload.hpp"

namespace syncopate::simulate::server {

struct Travelled {
  double pushed_bytes = 0, pulled_bytes = 0;  ///< of all workers
  double pushes = 0;
};

struct Course {
  std::vector<double> ended_s;       ///< when the slowest worker ended each step's backward pass
  std::vector<Travelled> travelled;  ///< what was sent until then
};

/// `steps` steps of every worker, as TableWorker makes them: one request at most is under way for a block; updates add
/// up until the rule lets them travel; a worker that waits sends what the rule then asks for.
[[nodiscard]] Course run_job(const Scene& scene, const Workload& workload, const Ports::Links& links, int steps);

}  // namespace syncopate::simulate::server
