// Our own side of a benchmark: one rank of a job, or all ranks as threads of one process.
#pragma once

#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/rows.hpp"
#include "syncopate/group.hpp"

namespace syncopate::tools::bench {

/// Runs a job given as `key=value` arguments (bench/contender/measure.hpp) and prints raw rows; the exit code.
int run_worker(const std::vector<std::string>& arguments);

/// All rounds of a task by a group of its size, which every rank calls; every rank ends with the rows.
void measure_task(Group& group, const Task& task, Rows& rows);

/// This process is one rank of a job that is running already: the task in it. Returns whether this is rank 0.
bool run_in_job(const Task& task, Rows& rows);

/// The size of the job that the environment describes, 0 if it describes none.
[[nodiscard]] int job_ranks();

}  // namespace syncopate::tools::bench
