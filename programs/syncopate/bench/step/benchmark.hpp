// Training step benchmark: policies, codecs and exchanges, compared with ranks that do not communicate.
#pragma once

#include <string>
#include <vector>

#include "bench/step/rows.hpp"
#include "command.hpp"

namespace syncopate::tools::bench {

struct StepRequest {
  int ranks = 4;
  std::string lab;         ///< rate of the lab; empty: loopback, and no bound
  int ranks_per_host = 1;  ///< of the lab
  std::string policies;    ///< comma-separated; empty: wfbp,fusion, or fusion where codecs are compared
  std::string codecs = "none";
  std::string exchanges = "allreduce";
  std::string contenders;  ///< that PyTorch trains, comma-separated
  int rounds = 3;
  int steps = 10;                  ///< measured per round, after `kWarmup` that are not
  std::vector<std::string> words;  ///< further options of `syncopate train`: model, data, batch, ...
};

void declare(CLI::App& app, StepRequest& request);

/// The ceiling, every policy with every codec and every exchange, then what PyTorch trains.
[[nodiscard]] std::vector<StepVariant> variants_of(const StepRequest& request);

/// Runs all rounds, variants interleaved; the exit code.
[[nodiscard]] int run_step_benchmark(const StepRequest& request, const Session& session);

}  // namespace syncopate::tools::bench
