// Training steps under measure: each policy beside ranks that do not communicate, and the bound that follows from them.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace syncopate::tools::bench {

struct StepRequest {
  int ranks = 4;
  std::string lab;                       ///< rate of the lab; empty: loopback, and no bound
  std::string policies = "wfbp,fusion";  ///< comma-separated
  int rounds = 3;
  int steps = 10;                  ///< measured per round, after `kWarmup` that are not
  std::vector<std::string> words;  ///< further options of `syncopate train`: model, data, batch, ...
};

void declare(CLI::App& app, StepRequest& request);

/// No step of dense gradients can be faster than ranks that do not communicate, nor than their forward pass, the
/// ring's time on a full wire, and their optimizer, one after the other (bytes cannot travel before they are made).
struct StepBound {
  double alone_s = 0;      ///< step of ranks that do not communicate
  double forward_s = 0;    ///< of the same
  double optimizer_s = 0;  ///< of the same
  double ring_s = 0;       ///< 2(N-1)/N S/BW x 1.047 (headers of Ethernet, IP and TCP at 1500 bytes)
  [[nodiscard]] double seconds() const;
};

/// Runs all rounds, variants interleaved; the exit code.
[[nodiscard]] int run_step_benchmark(const StepRequest& request, const Session& session);

}  // namespace syncopate::tools::bench
