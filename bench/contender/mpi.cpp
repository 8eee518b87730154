// Contender MPI (Open MPI or MPICH, whichever compiled it): its collectives, timed by the common block method.
//
// The algorithm is the library's own choice for the size. Arguments: those of a Job but rank and size.
#include <signal.h>
#include <unistd.h>

#include <memory>

#include "mpi_main.hpp"

namespace {

using contender::Call;
using contender::Job;

template <class T>
MPI_Datatype type_of() {
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  if constexpr (std::is_same_v<T, std::int64_t>) return MPI_INT64_T;
}

MPI_Op operation_named(const std::string& op) {
  if (op == "sum") return MPI_SUM;
  if (op == "min") return MPI_MIN;
  if (op == "max") return MPI_MAX;
  if (op == "product") return MPI_PROD;
  throw std::runtime_error("MPI offers sum, min, max and product, not " + op);
}

struct Parts {
  std::vector<int> counts, offsets;
};

Parts parts_of(std::size_t count, int ranks) {
  Parts parts;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto part = contender::even_part(count, ranks, rank);
    parts.counts.push_back(static_cast<int>(part.end - part.begin));
    parts.offsets.push_back(static_cast<int>(part.begin));
  }
  return parts;
}

template <class T>
Call allgather(std::span<T> data, int ranks) {
  const Parts parts = parts_of(data.size(), ranks);
  const contender::VectorPart whole{0, 0, data.size()};
  if (data.size() % ranks == 0)
    return {[=] {
              MPI_Allgather(MPI_IN_PLACE, 0, type_of<T>(), data.data(), parts.counts[0], type_of<T>(), MPI_COMM_WORLD);
            },
            whole};
  return {[=] {
            MPI_Allgatherv(MPI_IN_PLACE, 0, type_of<T>(), data.data(), parts.counts.data(), parts.offsets.data(),
                           type_of<T>(), MPI_COMM_WORLD);
          },
          whole};
}

template <class T>
Call reduce_scatter(std::span<T> data, const Job& job) {
  const Parts parts = parts_of(data.size(), job.size);
  const MPI_Op op = operation_named(job.op);
  contender::VectorPart answer = contender::even_part(data.size(), job.size, job.rank);
  answer.at = 0;  // in place, MPI leaves a rank's part at the start of its memory
  return {[=] { MPI_Reduce_scatter(MPI_IN_PLACE, data.data(), parts.counts.data(), type_of<T>(), op, MPI_COMM_WORLD); },
          answer};
}

template <class T>
Call gather(std::span<T> data, const Job& job) {
  const Parts parts = parts_of(data.size(), job.size);
  const auto mine = contender::even_part(data.size(), job.size, job.rank);
  const bool rooted = job.rank == job.root, even = data.size() % job.size == 0;
  const int count = static_cast<int>(mine.end - mine.begin), root = job.root;
  const void* from = rooted ? MPI_IN_PLACE : data.data() + mine.begin;
  const contender::VectorPart answer = rooted ? contender::VectorPart{0, 0, data.size()} : contender::VectorPart{};
  if (even)
    return {[=] { MPI_Gather(from, count, type_of<T>(), data.data(), count, type_of<T>(), root, MPI_COMM_WORLD); },
            answer};
  return {[=] {
            MPI_Gatherv(from, count, type_of<T>(), data.data(), parts.counts.data(), parts.offsets.data(), type_of<T>(),
                        root, MPI_COMM_WORLD);
          },
          answer};
}

template <class T>
Call scatter(std::span<T> data, const Job& job) {
  const Parts parts = parts_of(data.size(), job.size);
  const auto mine = contender::even_part(data.size(), job.size, job.rank);
  const int count = static_cast<int>(mine.end - mine.begin), root = job.root;
  void* to = job.rank == job.root ? MPI_IN_PLACE : data.data() + mine.begin;
  if (data.size() % job.size == 0)
    return {[=] { MPI_Scatter(data.data(), count, type_of<T>(), to, count, type_of<T>(), root, MPI_COMM_WORLD); },
            mine};
  return {[=] {
            MPI_Scatterv(data.data(), parts.counts.data(), parts.offsets.data(), type_of<T>(), to, count, type_of<T>(),
                         root, MPI_COMM_WORLD);
          },
          mine};
}

template <class T>
Call alltoall(std::span<T> data, const Job& job) {
  const auto out = std::make_shared<std::vector<T>>(data.size());
  const int count = static_cast<int>(data.size()) / job.size;
  return {[=] { MPI_Alltoall(data.data(), count, type_of<T>(), out->data(), count, type_of<T>(), MPI_COMM_WORLD); },
          {0, 0, data.size(), static_cast<std::uint32_t>(job.rank)},
          out->data()};
}

template <class T>
Call call_for(const Job& job, std::span<T> data) {
  const int count = static_cast<int>(data.size()), root = job.root;
  const contender::VectorPart whole{0, 0, data.size()};
  const MPI_Op op = operation_named(job.op);
  const bool rooted = job.rank == root;
  if (job.collective == "allreduce")
    return {[=] { MPI_Allreduce(MPI_IN_PLACE, data.data(), count, type_of<T>(), op, MPI_COMM_WORLD); }, whole};
  if (job.collective == "broadcast")
    return {[=] { MPI_Bcast(data.data(), count, type_of<T>(), root, MPI_COMM_WORLD); }, whole};
  if (job.collective == "reduce")
    return {[=] {
              MPI_Reduce(rooted ? MPI_IN_PLACE : data.data(), rooted ? data.data() : nullptr, count, type_of<T>(), op,
                         root, MPI_COMM_WORLD);
            },
            rooted ? whole : contender::VectorPart{}};
  if (job.collective == "allgather") return allgather<T>(data, job.size);
  if (job.collective == "reduce_scatter") return reduce_scatter<T>(data, job);
  if (job.collective == "gather") return gather<T>(data, job);
  if (job.collective == "scatter") return scatter<T>(data, job);
  if (job.collective == "alltoall") return alltoall<T>(data, job);
  if (job.collective == "barrier") return {[] { MPI_Barrier(MPI_COMM_WORLD); }, {}};
  throw std::runtime_error("no such collective: " + job.collective);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    const Job job = contender::mpi_job(argc, argv);
    contender::measure_by_mpi(job, [&](auto data) { return call_for(job, data); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "contender MPI: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  // All rows are out. MPICH 4 over TCP has been seen to hang in here; that must not hang the benchmark.
  signal(SIGALRM, [](int) { _exit(0); });
  alarm(5);
  MPI_Finalize();
  return 0;
}
