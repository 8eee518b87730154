// Exchange benchmark: flat and hierarchical top-k and dense all-reduces, on emulated hosts with several ranks.
#pragma once

#include <string>
#include <vector>

#include "bench/exchange/law.hpp"
#include "command.hpp"

namespace syncopate::tools::bench {

struct ExchangeRequest {
  int hosts = 2;
  int ranks_per_host = 2;
  std::string lab;  ///< rate of a host's port
  std::string elements = "25Mi";
  std::string algorithms = "ring,torus_2d";  ///< of the dense all-reduces
  std::string codecs = "topk";               ///< of topk and mstopk
  std::string densities = "0.001,0.01";
  int rounds = 2;
  int steps = 2;  ///< timed, of every exchange and round
};

void declare(CLI::App& app, ExchangeRequest& request);

/// Throws Misuse for what cannot be measured.
[[nodiscard]] ExchangePlace place_of(const ExchangeRequest& request);
/// Dense by every algorithm; then of every density and codec NaiveAG and HiTopKComm.
[[nodiscard]] std::vector<ExchangeSubject> subjects_of(const ExchangeRequest& request);

/// Starts the ranks, in each round with ports that are not shaped and with shaped ones; the exit code.
[[nodiscard]] int run_exchange_benchmark(const ExchangeRequest& request, const Session& session);
/// One of those ranks: measures every subject once and prints a raw row of each on rank 0.
[[nodiscard]] int run_exchanger(const ExchangeRequest& request);

}  // namespace syncopate::tools::bench
