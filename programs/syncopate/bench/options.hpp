// The validated request of `syncopate bench COLLECTIVE`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::tools::bench {

/// As given on the command line.
struct Request {
  std::string collective;
  int ranks = 0;  ///< 0: four, or the job's when inside `syncopate run`
  std::string lab;
  int ranks_per_host = 1;
  std::string rate;
  std::string bytes = "4KiB,256KiB,1MiB,16MiB";
  std::string algorithms = "auto";
  std::string blocks;  ///< numbers of pipeline blocks; empty: the algorithms' own choice
  std::string contenders = "ours";
  std::string transport;
  std::string memory;
  std::string dtype = "f32";
  std::string op = "sum";
  int root = 0;
  int rounds = 3;
  double budget_s = 3;
};

/// The request as values.
struct Task {
  Collective collective = Collective::allreduce;
  int ranks = 4;
  std::string lab;                      ///< rate of the lab to start; empty: none
  int ranks_per_host = 1;               ///< of the lab
  double bits_per_s = 0;                ///< of one host's port; 0: not known
  std::vector<std::uint64_t> bytes;     ///< of the full vector, in the order given
  std::vector<std::string> algorithms;  ///< ours: "ring", or with a number of blocks "linear_pipeline:64"
  std::vector<std::string> contenders;  ///< "ours", "gloo", ...; "all" where `all_contenders`
  bool all_contenders = false;
  std::string transport;
  std::vector<std::string> memories{"own"};  ///< where our vectors lie: "group", "own"
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  int rounds = 3;
  double budget_s = 3;
  bool apart = false;  ///< calls between barriers, which count
};

/// Throws Misuse naming the allowed values. `job_ranks` is the size of the surrounding job, 0 outside one.
[[nodiscard]] Task task_of(const Request& request, int job_ranks);

/// Algorithm and tuning of an entry of Task::algorithms.
struct TunedAlgorithm {
  std::string name;
  Tuning tuning;
};
[[nodiscard]] TunedAlgorithm tuned_algorithm(const std::string& entry);

/// The choice of that name; empty for no name: the environment has it.
[[nodiscard]] std::optional<TransportChoice> transport_choice(const std::string& name);

/// Declares the options of one collective's benchmark.
void declare(CLI::App& app, Request& request);

/// "a,b,c" -> its parts; no empty ones.
[[nodiscard]] std::vector<std::string> parts_of(const std::string& list);
/// "a,b:1,2,c" -> "a", "b:1,2", "c": a number belongs to the codec before it.
[[nodiscard]] std::vector<std::string> codecs_of(const std::string& list);

}  // namespace syncopate::tools::bench
