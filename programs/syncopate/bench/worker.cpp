// Our own side of a benchmark: the library's collectives under the block method that all contenders share.
#include "bench/worker.hpp"

#include <fmt/ranges.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "../../bench/contender/measure.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "syncopate/group.hpp"

namespace syncopate::tools::bench {
namespace {

using contender::Call;
using contender::Job;
using contender::Sink;
using contender::VectorPart;

/// Zeroed elements in the group's memory, or in the program's own.
template <class T>
std::shared_ptr<T[]> vector_of(Group& group, const Job& job, std::size_t elements) {
  return job.memory == "own" ? std::make_shared<T[]>(elements) : group.allocate<T>(elements);
}

template <class T>
Call call_for(Group& group, const Job& job, const std::string& algorithm, std::span<T> data) {
  const Buffer buffer(data.data(), data.size(), dtype_named(job.dtype));
  const TunedAlgorithm by = tuned_algorithm(algorithm);
  const CollectiveOptions options{.op = reduce_op_named(job.op),
                                  .root = job.root,
                                  .algorithm = by.name,
                                  .name = {},
                                  .tuning = by.tuning,
                                  .scope = Scope::group};
  const VectorPart whole{0, 0, data.size()};
  const VectorPart own =
      contender::even_part(data.size(), static_cast<std::size_t>(job.size), static_cast<std::size_t>(job.rank));
  switch (collective_named(job.collective)) {
    case Collective::allreduce:
      return {[=, &group] { allreduce(group, buffer, options); }, whole};
    case Collective::reduce_scatter:
      return {[=, &group] { reduce_scatter(group, buffer, options); }, own};
    case Collective::allgather:
      return {[=, &group] { allgather(group, buffer, options); }, whole};
    case Collective::broadcast:
      return {[=, &group] { broadcast(group, buffer, options); }, whole};
    case Collective::reduce:
      return {[=, &group] { reduce(group, buffer, options); }, job.rank == job.root ? whole : VectorPart{}};
    case Collective::gather:
      return {[=, &group] { gather(group, buffer, options); }, job.rank == job.root ? whole : VectorPart{}};
    case Collective::scatter:
      return {[=, &group] { scatter(group, buffer, options); }, own};
    case Collective::alltoall: {
      const auto out = vector_of<T>(group, job, data.size());
      const Buffer second(out.get(), data.size(), buffer.dtype);
      return {[=, &group] { static_cast<void>(out), alltoall(group, buffer, second, options); },
              {0, 0, data.size(), static_cast<std::uint32_t>(job.rank)},
              out.get()};
    }
    case Collective::barrier:
      return {[=, &group] { barrier(group, options); }, {}};
    case Collective::allgather_v:
    case Collective::alltoall_v:
      break;
  }
  throw Misuse("bench measures allgather and alltoall, which allgather_v and alltoall_v are with parts of any length");
}

template <class T>
void measure_in(Group& group, const Job& job, const Sink& sink) {
  const auto combine = [&group](std::vector<double>& values, ReduceOp op) {
    allreduce(group, std::span<double>(values), {.op = op, .root = 0, .algorithm = "auto", .name = {}});
  };
  contender::Ties ties;
  ties.barrier = [&group] { barrier(group); };
  ties.maximum = [&](std::vector<double>& values) { combine(values, ReduceOp::max); };
  ties.sum = [&](std::vector<double>& values) { combine(values, ReduceOp::sum); };
  const std::size_t elements = contender::longest_vector<T>(job);
  const auto memory = vector_of<T>(group, job, elements);
  const contender::Subject<T> subject{
      [&](const std::string& algorithm, std::span<T> data) { return call_for<T>(group, job, algorithm, data); },
      {memory.get(), elements}};
  contender::measure<T>(job, ties, subject, sink);
  ties.barrier();
}

void measure_as_typed(Group& group, const Job& job, const Sink& sink) {
  switch (dtype_named(job.dtype)) {
    case DType::f32:
      return measure_in<float>(group, job, sink);
    case DType::f64:
      return measure_in<double>(group, job, sink);
    case DType::f16:
      return measure_in<contender::Half>(group, job, sink);
    case DType::bf16:
      return measure_in<contender::Brain>(group, job, sink);
    case DType::i32:
      return measure_in<std::int32_t>(group, job, sink);
    case DType::i64:
      return measure_in<std::int64_t>(group, job, sink);
    case DType::u8:
      return measure_in<std::uint8_t>(group, job, sink);
  }
}

void measure_in_group(Group& group, Job job, const Sink& sink) {
  job.rank = group.rank();
  job.size = group.size();
  for (const std::string& memory : contender::split(job.memory)) {
    job.memory = memory;
    measure_as_typed(group, job, sink);
  }
}

/// The first exception of any rank; the others' are its consequences.
class FirstError final {
 public:
  void take(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

void measure_in_threads(const Job& job) {
  const auto groups = Group::threads(job.size);
  FirstError first;
  {
    std::vector<std::jthread> ranks;  // runs on: one thread per rank
    for (const auto& group : groups)
      ranks.emplace_back([&, rank = group->rank()] {
        try {
          measure_in_group(*group, job, [rank](const std::string& line) {
            if (rank == 0) contender::print_on_rank_zero({}, line);
          });
        } catch (const std::exception& error) {
          first.take(std::current_exception());
          group->abort(error.what());
        }
      });
  }
  first.rethrow();
}

Job job_of(const Task& task) {
  Job job;
  job.contender = "syncopate";
  job.collective = name_of(task.collective);
  job.algorithms = task.algorithms;
  job.bytes.assign(task.bytes.begin(), task.bytes.end());
  job.dtype = name_of(task.dtype);
  job.op = name_of(task.op);
  job.root = task.root;
  job.budget_s = task.budget_s / task.rounds;
  job.memory = fmt::format("{}", fmt::join(task.memories, ","));
  job.apart = task.apart;
  return job;
}

}  // namespace

int run_worker(const std::vector<std::string>& arguments) {
  std::vector<const char*> words;
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  Job job = contender::job_of(contender::arguments(static_cast<int>(words.size()), words.data()));
  if (job.transport == "inproc") {
    job.threads = true;
    measure_in_threads(job);
    return 0;
  }
  GroupOptions options;
  options.transport = transport_choice(job.transport);
  const auto group = Group::join(options);
  job.transport = group->transport();
  measure_in_group(*group, job, [&](const std::string& line) {
    if (group->rank() == 0) contender::print_on_rank_zero({}, line);
  });
  return 0;
}

void measure_task(Group& group, const Task& task, Rows& rows) {
  Job job = job_of(task);
  job.transport = group.transport();
  for (int round = 0; round < task.rounds; ++round)
    measure_in_group(group, job, [&](const std::string& line) { rows.add(line); });
}

bool run_in_job(const Task& task, Rows& rows) {
  GroupOptions options;
  options.transport = transport_choice(task.transport);
  const auto group = Group::join(options);
  measure_task(*group, task, rows);
  return group->rank() == 0;
}

int job_ranks() {
  const char* rank = std::getenv("SYNCOPATE_RANK");
  const char* size = std::getenv("SYNCOPATE_SIZE");
  return rank != nullptr && size != nullptr ? std::atoi(size) : 0;
}

}  // namespace syncopate::tools::bench
