// Our own side of a benchmark: one rank of a job, or all ranks as threads of one process.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/rows.hpp"

namespace syncopate::tools::bench {

/// Runs a job given as `key=value` arguments (bench/contender/measure.hpp) and prints raw rows; the exit code.
int run_worker(const std::vector<std::string>& arguments);

/// This process is one rank of a job that is running already: all rounds of all tasks in it. Rank 0 ends with the rows.
/// Returns whether this is rank 0.
bool run_in_job(std::span<const Task> tasks, Rows& rows);

/// The size of the job that the environment describes, 0 if it describes none.
[[nodiscard]] int job_ranks();

}  // namespace syncopate::tools::bench
