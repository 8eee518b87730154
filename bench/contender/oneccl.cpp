// Contender oneCCL: its all-reduce, broadcast and reduce on vectors in host memory, timed by the common block method.
//
// oneCCL starts as an MPI program, which also gives rank, size and the ties. Arguments: those of a Job but rank and
// size.
#include <oneapi/ccl.hpp>

#include "mpi_main.hpp"

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
  if (op == "product") return ccl::reduction::prod;
  throw std::runtime_error("oneCCL is compared by sum, min, max and product, not " + op);
}

template <class T>
Call call_for(const Job& job, std::span<T> data, const ccl::communicator& group) {
  const auto op = operation_named(job.op);
  const int root = job.root;
  const contender::VectorPart whole{0, 0, data.size()};
  if (job.collective == "allreduce")
    return {[=, &group] { ccl::allreduce(data.data(), data.data(), data.size(), op, group).wait(); }, whole};
  if (job.collective == "broadcast")
    return {[=, &group] { ccl::broadcast(data.data(), data.size(), root, group).wait(); }, whole};
  if (job.collective == "reduce")
    return {[=, &group] { ccl::reduce(data.data(), data.data(), data.size(), op, root, group).wait(); },
            job.rank == root ? whole : contender::VectorPart{}};
  throw std::runtime_error("oneCCL is compared by allreduce, broadcast and reduce, not " + job.collective);
}

}  // namespace

int main(int argc, char** argv) {
  ccl::init();
  MPI_Init(&argc, &argv);
  try {
    const Job job = contender::mpi_job(argc, argv);
    const ccl::communicator group = communicator_of(job);
    contender::measure_by_mpi(job, [&](auto data) { return call_for(job, data, group); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "contender oneCCL: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
