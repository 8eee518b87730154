// Contender oneCCL: its all-reduce, broadcast and reduce on vectors in host memory, timed by the common block method.
//
// oneCCL starts as an MPI program, which also gives rank, size and the ties. Arguments: those of a Job but rank and
// size.
#include <mpi.h>

#include <oneapi/ccl.hpp>

#include "measure.hpp"

namespace {

using contender::Call;
using contender::Job;

/// Rank 0 creates the key-value store by which the ranks find one another; the others get its address.
ccl::communicator communicator_of(const Job& job) {
  ccl::shared_ptr_class<ccl::kvs> store;
  ccl::kvs::address_type address;
  if (job.rank == 0) store = ccl::create_main_kvs(), address = store->get_address();
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (job.rank != 0) store = ccl::create_kvs(address);
  return ccl::create_communicator(job.size, job.rank, store);
}

ccl::reduction operation_named(const std::string& op) {
  if (op == "sum") return ccl::reduction::sum;
  if (op == "min") return ccl::reduction::min;
  if (op == "max") return ccl::reduction::max;
  throw std::runtime_error("oneCCL is compared by sum, min and max, not " + op);
}

template <class T>
Call call_for(const Job& job, std::span<T> data, const ccl::communicator& group) {
  const auto op = operation_named(job.op);
  const int root = job.root;
  const contender::Answer whole{0, 0, data.size()};
  if (job.collective == "allreduce")
    return {[=, &group] { ccl::allreduce(data.data(), data.data(), data.size(), op, group).wait(); }, whole};
  if (job.collective == "broadcast")
    return {[=, &group] { ccl::broadcast(data.data(), data.size(), root, group).wait(); }, whole};
  if (job.collective == "reduce")
    return {[=, &group] { ccl::reduce(data.data(), data.data(), data.size(), op, root, group).wait(); },
            job.rank == root ? whole : contender::Answer{}};
  throw std::runtime_error("oneCCL is compared by allreduce, broadcast and reduce, not " + job.collective);
}

template <class T>
void run(const Job& job, const ccl::communicator& group) {
  const auto combine = [](std::vector<double>& values, MPI_Op op) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, op, MPI_COMM_WORLD);
  };
  contender::Ties ties;
  ties.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  ties.maximum = [&](std::vector<double>& values) { combine(values, MPI_MAX); };
  ties.sum = [&](std::vector<double>& values) { combine(values, MPI_SUM); };
  contender::measure<T>(
      job, ties, [&](const std::string&, std::span<T> data) { return call_for<T>(job, data, group); },
      [&](const std::string& line) { contender::print_on_rank_zero(job, line); });
}

}  // namespace

int main(int argc, char** argv) {
  ccl::init();
  MPI_Init(&argc, &argv);
  try {
    Job job = contender::job_of(contender::arguments(argc - 1, argv + 1));
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    const ccl::communicator group = communicator_of(job);
    if (job.dtype == "f32") run<float>(job, group);
    if (job.dtype == "f64") run<double>(job, group);
    if (job.dtype == "i32") run<std::int32_t>(job, group);
    if (job.dtype == "i64") run<std::int64_t>(job, group);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "contender oneCCL: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
