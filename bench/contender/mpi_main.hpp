// The frame of a contender that starts as an MPI program: rank, size, ties, and the run of a Job for its element type.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "measure.hpp"

namespace contender {

/// The agreement of ranks outside the timed stretches, by MPI.
inline Ties mpi_ties() {
  const auto combine = [](std::vector<double>& values, MPI_Op op) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, op, MPI_COMM_WORLD);
  };
  return {.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); },
          .maximum = [=](std::vector<double>& values) { combine(values, MPI_MAX); },
          .sum = [=](std::vector<double>& values) { combine(values, MPI_SUM); }};
}

/// The Job of these arguments (all but rank and size), after MPI_Init.
inline Job mpi_job(int argc, char** argv) {
  Job job = job_of(arguments(argc - 1, argv + 1));
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.size);
  return job;
}

/// Measures `call_for(data)`, which returns the Call of the job's collective on a vector, for the job's element type.
template <class CallFor>
void measure_by_mpi(const Job& job, const CallFor& call_for) {
  const auto run = [&]<class T>(T) {
    measure<T>(
        job, mpi_ties(), [&](const std::string&, std::span<T> data) { return call_for(data); },
        [&](const std::string& line) { print_on_rank_zero(job, line); });
  };
  if (job.dtype == "f32") run(float{});
  if (job.dtype == "f64") run(double{});
  if (job.dtype == "i32") run(std::int32_t{});
  if (job.dtype == "i64") run(std::int64_t{});
}

}  // namespace contender
