// Contender Gloo: its collectives over its TCP transport, timed by the common block method.
//
// Only the algorithms of its current interface: the older ones (ring_chunked, halving_doubling) stall over loopback
// and spoil later calls on the same connections. It has no reduce-scatter of the current kind,
// and its gather and scatter are given equal parts.
// Arguments: those of a Job (rank and size may also stand in SYNCOPATE_RANK and SYNCOPATE_SIZE), store=FOLDER (empty,
// shared by all ranks), and interface=NAME or address=ADDRESS of this rank.
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <memory>

#include "measure.hpp"

namespace {

using contender::Call;
using contender::Job;
using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Function = gloo::AllreduceOptions::Func;

/// Every call needs a tag that no call in flight shares.
struct Link {
  Context context;
  std::uint32_t tag = 1;
};

template <class T>
Function function_for(const std::string& op) {
  using Raw = void (*)(void*, const void*, const void*, std::size_t);
  if (op == "sum") return static_cast<Raw>(&gloo::sum<T>);
  if (op == "min") return static_cast<Raw>(&gloo::min<T>);
  if (op == "max") return static_cast<Raw>(&gloo::max<T>);
  if (op == "product") return static_cast<Raw>(&gloo::product<T>);
  throw std::runtime_error("gloo offers sum, min, max and product, not " + op);
}

template <class T>
void allreduce(Link& link, std::span<T> data, const Function& function, const std::string& algorithm) {
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  gloo::AllreduceOptions options(link.context);
  options.setTag(link.tag++);
  options.setAlgorithm(algorithm == "bcube" ? Algorithm::BCUBE : Algorithm::RING);
  options.setOutput(data.data(), data.size());
  options.setReduceFunction(function);
  gloo::allreduce(options);
}

template <class T>
void allgather(Link& link, const Job& job, std::span<T> data) {
  const auto mine = contender::even_part(data.size(), job.size, job.rank);
  if (data.size() % job.size == 0) {
    gloo::AllgatherOptions options(link.context);
    options.setTag(link.tag++);
    options.setInput(data.data() + mine.begin, mine.end - mine.begin);
    options.setOutput(data.data(), data.size());
    return gloo::allgather(options);
  }
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < job.size; ++rank) {
    const auto part = contender::even_part(data.size(), job.size, rank);
    counts.push_back(part.end - part.begin);
  }
  gloo::AllgathervOptions options(link.context);
  options.setTag(link.tag++);
  options.setInput(data.data() + mine.begin, mine.end - mine.begin);
  options.setOutput(data.data(), counts);
  gloo::allgatherv(options);
}

template <class T>
void broadcast(Link& link, const Job& job, std::span<T> data) {
  gloo::BroadcastOptions options(link.context);
  options.setTag(link.tag++);
  options.setRoot(job.root);
  options.setOutput(data.data(), data.size());
  gloo::broadcast(options);
}

template <class T>
void reduce(Link& link, const Job& job, std::span<T> data, const Function& function) {
  gloo::ReduceOptions options(link.context);
  options.setTag(link.tag++);
  options.setRoot(job.root);
  options.setInput(data.data(), data.size());
  options.setOutput(data.data(), data.size());
  options.setReduceFunction(function);
  gloo::reduce(options);
}

template <class T>
void gather(Link& link, const Job& job, std::span<T> data) {
  const auto mine = contender::even_part(data.size(), job.size, job.rank);
  gloo::GatherOptions options(link.context);
  options.setTag(link.tag++);
  options.setRoot(job.root);
  options.setInput(data.data() + mine.begin, mine.end - mine.begin);
  if (job.rank == job.root) options.setOutput(data.data(), data.size());
  gloo::gather(options);
}

template <class T>
void scatter(Link& link, const Job& job, std::span<T> data) {
  const std::size_t part = data.size() / job.size;
  std::vector<T*> parts;
  for (int rank = 0; rank < job.size; ++rank) parts.push_back(data.data() + part * rank);
  gloo::ScatterOptions options(link.context);
  options.setTag(link.tag++);
  options.setRoot(job.root);
  if (job.rank == job.root) options.setInputs(parts, part);
  options.setOutput(parts[job.rank], part);
  gloo::scatter(options);
}

template <class T>
Call alltoall(Link& link, const Job& job, std::span<T> data) {
  const auto out = std::make_shared<std::vector<T>>(data.size());
  return {[=, &link] {
            gloo::AlltoallOptions options(link.context);
            options.setTag(link.tag++);
            options.setInput(data.data(), data.size());
            options.setOutput(out->data(), out->size());
            gloo::alltoall(options);
          },
          {0, 0, data.size(), static_cast<std::uint32_t>(job.rank)},
          out->data()};
}

void barrier(Link& link) {
  gloo::BarrierOptions options(link.context);
  options.setTag(link.tag++);
  gloo::barrier(options);
}

template <class T>
Call call_for(Link& link, const Job& job, const std::string& algorithm, std::span<T> data) {
  const Function function = function_for<T>(job.op);
  const contender::VectorPart whole{0, 0, data.size()};
  if (job.collective == "allreduce") return {[=, &link] { allreduce<T>(link, data, function, algorithm); }, whole};
  if (job.collective == "allgather") return {[=, &link, &job] { allgather<T>(link, job, data); }, whole};
  if (job.collective == "broadcast") return {[=, &link, &job] { broadcast<T>(link, job, data); }, whole};
  if (job.collective == "reduce")
    return {[=, &link, &job] { reduce<T>(link, job, data, function); },
            job.rank == job.root ? whole : contender::VectorPart{}};
  if (job.collective == "gather")
    return {[=, &link, &job] { gather<T>(link, job, data); }, job.rank == job.root ? whole : contender::VectorPart{}};
  if (job.collective == "scatter")
    return {[=, &link, &job] { scatter<T>(link, job, data); }, contender::even_part(data.size(), job.size, job.rank)};
  if (job.collective == "alltoall") return alltoall<T>(link, job, data);
  if (job.collective == "barrier") return {[&link] { barrier(link); }, {}};
  throw std::runtime_error("gloo does not offer " + job.collective);
}

template <class T>
void run(Link& link, const Job& job) {
  contender::Ties ties;
  ties.barrier = [&] { barrier(link); };
  const auto combine = [&link](std::vector<double>& values, const char* op) {
    allreduce<double>(link, values, function_for<double>(op), "ring");
  };
  ties.maximum = [&](std::vector<double>& values) { combine(values, "max"); };
  ties.sum = [&](std::vector<double>& values) { combine(values, "sum"); };
  contender::measure<T>(
      job, ties,
      [&](const std::string& algorithm, std::span<T> data) { return call_for<T>(link, job, algorithm, data); },
      [&](const std::string& line) { contender::print_on_rank_zero(job, line); });
  ties.barrier();
}

int run_all(int argc, char** argv) {
  auto given = contender::arguments(argc - 1, argv + 1);
  if (const char* rank = std::getenv("SYNCOPATE_RANK")) given.try_emplace("rank", rank);
  if (const char* size = std::getenv("SYNCOPATE_SIZE")) given.try_emplace("size", size);
  const Job job = contender::job_of(given);
  gloo::rendezvous::FileStore store(given.at("store"));
  gloo::transport::tcp::attr attributes;
  attributes.hostname = given["address"];
  attributes.iface = given["interface"];
  Link link{std::make_shared<gloo::rendezvous::Context>(job.rank, job.size)};
  link.context->setTimeout(std::chrono::seconds(60));
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  link.context->connectFullMesh(store, device);
  if (job.dtype == "f32") run<float>(link, job);
  if (job.dtype == "f64") run<double>(link, job);
  if (job.dtype == "i32") run<std::int32_t>(link, job);
  if (job.dtype == "i64") run<std::int64_t>(link, job);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "contender gloo: %s\n", error.what());
    return 1;
  }
}
