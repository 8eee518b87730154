// Steps: workers and servers of a scene in virtual time, by the production server's tables.
#pragma once

#include <vector>

#include "simulate/server/ports.hpp"
#include "simulate/server/scene.hpp"
#include "simulate/training.hpp"

namespace syncopate::simulate::server {

struct Travelled {
  double pushed_bytes = 0, pulled_bytes = 0;  ///< sums over all workers
  double pushes = 0;
};

struct RunTimes {
  std::vector<double> ended_s;       ///< by step: the time at which the slowest worker ended its backward pass
  std::vector<Travelled> travelled;  ///< bytes sent by then
};

/// Runs `steps` steps of every worker. WorkerTables and ServerTables decide who sends what, and when; a message takes
/// the time of its bytes on the ports, and a process codes and reduces one block after another, in the order in which
/// they become due; a worker's computing loses the time of its coding, unless it waits. Setting up takes no time.
[[nodiscard]] RunTimes run_steps(const Scene& scene, const Workload& workload, const Ports::Links& links, int steps);

}  // namespace syncopate::simulate::server
