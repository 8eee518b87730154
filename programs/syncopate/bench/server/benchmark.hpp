// Push and pull benchmark: this library's parameter server and a bare gRPC stream of the same bytes.
#pragma once

#include <string>

#include "command.hpp"

namespace syncopate::tools::bench {

struct ServerRequest {
  int workers = 1;
  int servers = 1;
  int replicas = 0;  ///< of each server, as another contender
  std::string bytes = "1MiB,100MiB";
  int tables = 1;
  std::string lab;  ///< rate of the lab to start, a host for each worker; empty: this machine
  std::string contenders = "all";
  int rounds = 3;
  int steps = 5;       ///< timed rounds of push and pull in each run; of a replay: blocks of steps
  std::string replay;  ///< "thesis"; empty: push and pull
  std::string models = "resnet110,inception_v4_slim", placement = "lpt";  ///< of a replay
  double dilation = 1;                                                    ///< of a replay: of computing
};

void declare(CLI::App& app, ServerRequest& request);

/// The exit code: 1 if an answer was wrong. Throws Misuse before anything is started.
[[nodiscard]] int run_server_benchmark(const ServerRequest& request, const Session& session);

/// The thesis' steps with computing emulated by sleeping; the same exit codes.
[[nodiscard]] int run_server_replay(const ServerRequest& request, const Session& session);
/// Throws Misuse for options that do not go with a replay, or only with one.
void require_replayed(const CLI::App& app, const ServerRequest& request);

}  // namespace syncopate::tools::bench
