// `syncopate fit`: measures the network at hand and writes it down as a cluster file.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "bench/options.hpp"
#include "bench/rows.hpp"
#include "bench/worker.hpp"
#include "command.hpp"
#include "fit/cluster.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::command {
namespace {

struct Options {
  int ranks = 4;
  std::string lab;
  std::string output;
  std::string bytes = "64,1KiB,16KiB,256KiB,4MiB";
  double budget_s = 0.25;
};

constexpr const char* kCollectives[] = {"allreduce", "reduce_scatter", "allgather", "broadcast", "reduce"};

std::vector<fit::Timing> timings_of(const bench::Rows& rows) {
  std::vector<fit::Timing> timings;
  for (const nlohmann::json& row : rows.json())
    timings.push_back({.collective = row.at("collective"),
                       .algorithm = row.at("algorithm"),
                       .ranks = row.at("ranks"),
                       .bytes = row.at("bytes"),
                       .seconds = row.at("seconds").at("median"),
                       .cpu_seconds = row.at("cpu_seconds")});
  std::ranges::stable_sort(timings, {}, &fit::Timing::collective);
  return timings;
}

void report(const std::vector<fit::Timing>& timings, const Options& options, const Session& session) {
  const fit::ClusterFit fit = fit::fit_cluster(timings);
  const nlohmann::json cluster = fit::cluster_file(timings, fit, 1);
  std::ofstream file(options.output, std::ios::trunc);
  file << cluster.dump(1) << '\n';
  if (!file.flush()) throw SystemFailure(fmt::format("cannot write {}: {}", options.output, std::strerror(errno)));
  // A law that is wrong somewhere is still a law; whoever plans by it must know.
  constexpr double kTolerable = 0.25;
  if (fit.worst_of_links > kTolerable)
    session.log.write(LogLevel::warning,
                      fmt::format("the links are off by up to {:.0f} %: alpha, beta and gamma do not describe this "
                                  "network; planners use the measured tables instead",
                                  100 * fit.worst_of_links));
  if (session.json)
    print_row({{"cluster", options.output},
               {"links", cluster.at("links")},
               {"links_worst_error", fit.worst_of_links},
               {"cpu_s_per_byte", fit.cpu_s_per_byte},
               {"timings", timings.size()}});
  else
    fmt::print("{}cluster  {}\n", fit::table_of(timings, fit), options.output);
}

/// One rank of a job: all collectives by all algorithms; rank 0 writes.
int measure(const Options& options, const Session& session) {
  std::vector<bench::Task> tasks;
  for (const char* collective : kCollectives) {
    bench::Request request{.collective = collective, .bytes = options.bytes, .algorithms = "all"};
    request.rounds = 1;
    request.budget_s = options.budget_s;
    tasks.push_back(bench::task_of(request, bench::job_ranks()));
  }
  bench::Rows rows(0);
  if (!bench::run_in_job(tasks, rows)) return 0;
  if (!rows.all_correct()) throw Corrupt("a collective gave a wrong answer; nothing was written");
  report(timings_of(rows), options, session);
  return 0;
}

/// The same command again, as the ranks of a job.
int start_job(const Options& options, const Session& session) {
  std::optional<lab::Lab> lab;
  if (!options.lab.empty())
    lab.emplace(lab::Lab::start({.hosts = options.ranks, .rate = options.lab, .name = fmt::format("fit{}", getpid())}));
  launch::JobOptions job;
  job.ranks = options.ranks;
  job.lab = lab ? &*lab : nullptr;
  job.program = {session.program, "fit",         "--output", options.output,
                 "--bytes",       options.bytes, "--budget", fmt::format("{}", options.budget_s)};
  if (session.json) job.program.emplace_back("--json");
  const launch::JobEnd end = launch::run_job(job, [](const launch::Line& line) {
    if (line.stream != launch::Stream::progress)
      fmt::print(line.stream == launch::Stream::error ? stderr : stdout, "{}\n", line.text);
  });
  return end.forwarded_signal != 0 ? 128 + end.forwarded_signal : end.exit_code();
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<Options>();
  app.add_option("--ranks,-n", options->ranks, "Ranks to start; inside `syncopate run` the job's are used")
      ->check(CLI::Range(2, 256))
      ->capture_default_str();
  app.add_option("--lab", options->lab, "Give each rank an emulated host of its own with a port of this rate (1gbit)");
  app.add_option("--output,-o", options->output, "The cluster file")->required();
  app.add_option("--bytes", options->bytes, "Sizes of the full vector")->capture_default_str();
  app.add_option("--budget", options->budget_s, "Timed seconds per collective, algorithm and size")
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
