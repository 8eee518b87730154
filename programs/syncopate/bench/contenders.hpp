// Contenders: who can take part in a benchmark, and the command that starts each of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/options.hpp"

namespace syncopate::tools::bench {

/// "ours" and the names of the other libraries.
[[nodiscard]] std::vector<std::string> contender_names();

/// Where the ranks run.
struct Place {
  std::string program;             ///< this executable; contender programs are in the same folder
  std::string scratch;             ///< an empty folder that all ranks can reach, for this one run
  std::string interface;           ///< of the lab's hosts; empty: loopback
  std::vector<std::string> hosts;  ///< the lab's, by rank; empty: all ranks on this machine
};

/// The processes to start: either every rank (SYNCOPATE_RANK and SYNCOPATE_SIZE give its place), or one process that
/// starts the ranks itself.
struct Entry {
  std::vector<std::string> command;
  bool starts_ranks = false;
};

/// Why a contender cannot take part; nothing if it can.
[[nodiscard]] std::optional<std::string> hindrance(const std::string& name, const Task& task,
                                                   const std::string& program);

/// How many rows one run of it yields: its algorithms times the sizes.
[[nodiscard]] std::size_t rows_of(const std::string& name, const Task& task);

/// One run of a contender: all sizes, a share of the budget.
[[nodiscard]] Entry entry_of(const std::string& name, const Task& task, const Place& place);

}  // namespace syncopate::tools::bench
