// `syncopate fit`: measures the network at hand and writes it down as a cluster file.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>

#include "arguments.hpp"
#include "bench/options.hpp"
#include "bench/worker.hpp"
#include "command.hpp"
#include "fit/cluster.hpp"
#include "fit/coding.hpp"
#include "fit/measure.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::command {
namespace {

struct FitArguments {
  int ranks = 4;
  std::string lab;
  std::string output;
  std::string bytes = "4,256,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB";
  std::string transport, memory = "group", codecs;
  double budget_s = 0.05, limit_s = 45;
};

void report(const fit::Measured& measured, const FitArguments& options, const Session& session) {
  const fit::ClusterFit fit = fit::fit_cluster(measured);
  const nlohmann::json cluster = fit::cluster_file(measured, fit);
  std::ofstream file(options.output, std::ios::trunc);
  file << cluster.dump(1) << '\n';
  if (!file.flush()) throw SystemFailure(fmt::format("cannot write {}: {}", options.output, std::strerror(errno)));
  // A law with errors is still used for planning, so its errors are reported.
  for (const std::string& complaint : {fit::left_out(measured, options.limit_s), fit::complaint_about(measured, fit)})
    if (!complaint.empty()) session.log.write(LogLevel::warning, complaint);
  if (session.json)
    print_row({{"cluster", options.output},
               {"links", cluster.at("links")},
               {"links_worst_error", fit.worst_of_links},
               {"links_median_error", fit.median_of_links},
               {"links_errors", fit::errors_of(fit)},
               {"cpu_s_per_byte", fit.cpu_s_per_byte},
               {"transport", measured.transport},
               {"timings", measured.all.size()},
               {"left_out", measured.left_out}});
  else
    print_text("{}cluster  {}\n", fit::table_of(measured, fit), options.output);
}

fit::Effort effort_of(const FitArguments& options) {
  fit::Effort effort{.budget_s = options.budget_s, .limit_s = options.limit_s};
  for (const std::string& text : bench::parts_of(options.bytes)) effort.bytes.push_back(parse_bytes(text));
  std::ranges::sort(effort.bytes);
  if (effort.bytes.empty() || effort.bytes.front() == 0)
    throw Misuse(fmt::format("--bytes {}; allowed: sizes of at least 1 byte, such as 4,4KiB,1MiB", options.bytes));
  effort.memory = memory_named(options.memory);
  fit::require_codecs(bench::parts_of(options.codecs));
  return effort;
}

/// One rank of a job: all collectives by all algorithms; rank 0 writes.
int measure(const FitArguments& options, const Session& session) {
  const fit::Effort effort = effort_of(options);
  const auto group = Group::join({.transport = bench::transport_choice(options.transport)});
  fit::Measured measured = fit::measure(*group, effort);
  measured.codecs = fit::measure_coding(*group, bench::parts_of(options.codecs));
  if (group->rank() == 0) report(measured, options, session);
  return 0;
}

/// The same command again, as the ranks of a job.
int start_job(const FitArguments& options, const Session& session) {
  std::vector<std::uint32_t> hosts(static_cast<std::size_t>(options.ranks));
  if (!options.lab.empty()) std::iota(hosts.begin(), hosts.end(), 0U);
  fit::require_enough_time(effort_of(options), options.ranks, hosts);
  std::optional<lab::Lab> lab;
  if (!options.lab.empty())
    lab.emplace(lab::Lab::start({.hosts = options.ranks, .rate = options.lab, .name = fmt::format("fit{}", getpid())}));
  launch::JobOptions job;
  job.ranks = options.ranks;
  job.lab = lab ? &*lab : nullptr;
  job.transport = options.transport;
  job.program = {session.program, "fit",
                 "--output",      options.output,
                 "--bytes",       options.bytes,
                 "--memory",      options.memory,
                 "--budget",      fmt::format("{}", options.budget_s),
                 "--limit",       fmt::format("{}", options.limit_s)};
  if (!options.codecs.empty()) job.program.insert(job.program.end(), {"--codec", options.codecs});
  if (session.json) job.program.emplace_back("--json");
  const launch::job::End end = launch::run_job(job, [](const launch::job::Line& line) {
    if (line.stream != launch::job::Stream::progress)
      line.stream == launch::job::Stream::error ? print_error("{}\n", line.text) : print_text("{}\n", line.text);
  });
  return end.forwarded_signal != 0 ? 128 + end.forwarded_signal : end.exit_code();
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<FitArguments>();
  app.add_option("--ranks,-n", options->ranks, "Ranks to start; inside `syncopate run` the job's are used")
      ->check(between(2, 256))
      ->capture_default_str();
  app.add_option("--lab", options->lab, "Give each rank an emulated host of its own with a port of this rate (1gbit)")
      ->type_name("RATE")
      ->check(bit_rate());
  app.add_option("-o,--out,--output", options->output, "The cluster file")->required();
  app.add_option("--bytes", options->bytes, "Sizes of the full vector")
      ->type_name("BYTES")
      ->check(list_of(byte_size()))
      ->capture_default_str();
  app.add_option(
      "--codec", options->codecs,
      "Codecs whose coding is measured too, comma-separated: topk:0.01,fp16 (a codec with commas: one at a time)");
  app.add_option("--transport", options->transport,
                 "auto (shm within a host, tcp between hosts), tcp, shm; default auto, inside a job the job's")
      ->check(one_of("transport", names_of(kTransportChoices)));
  app.add_option(
         "--memory", options->memory,
         "Where all ranks share memory: vectors in the group's (Group::allocate, as gradients are), or own ones")
      ->check(one_of("memory", {"group", "own"}))
      ->capture_default_str();
  app.add_option("--budget", options->budget_s,
                 "Timed seconds per collective, algorithm and size in one pass; less where --limit is short")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option("--limit", options->limit_s, "Seconds of all passes; large sizes that would exceed it are left out")
      ->check(above_zero())
      ->capture_default_str();
  app.callback([options, &session] {
    session.action = [options, &session] {
      return bench::job_ranks() > 0 ? measure(*options, session) : start_job(*options, session);
    };
  });
}

}  // namespace

extern constinit const Command fit;
constinit const Command fit{"fit", "Measure the network at hand into a cluster file", define};

}  // namespace syncopate::tools::command
