// Replay benchmark: each policy on a real network, with computing replaced by sleeping, compared with its simulation.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace syncopate::tools::bench {

struct ReplayRequest {
  std::string profile;
  int ranks = 4;
  std::string lab;        ///< rate of the lab; empty: loopback, and nothing declared to compare with
  double dilation = 10;   ///< computing takes this many times as long
  double alpha_us = 450;  ///< startup time that every message takes more
  std::string algorithm = "ring";
  std::string exchange = "allreduce";  ///< of each bucket; or "reduce_broadcast"
  std::string policies = "wfbp,single,mg_wfbp,exact_dp,online";
  int rounds = 4, steps = 5;  ///< of each policy, in turn
};

void declare(CLI::App& app, ReplayRequest& request);
/// Starts the ranks and shows what they measured; the exit code.
[[nodiscard]] int run_replay_benchmark(const ReplayRequest& request, const Session& session);
/// One of those ranks.
[[nodiscard]] int run_replayer(const ReplayRequest& request);

}  // namespace syncopate::tools::bench
