// Stage: starting contenders through the launcher that `syncopate run` uses, in the lab or on this machine.
#include "bench/stage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <deque>
#include <filesystem>

#include "bench/agent.hpp"
#include "launch/launch.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::bench {
namespace {

constexpr std::size_t kRememberedLines = 12;

std::optional<lab::Lab> lab_for(const Task& task) {
  if (task.lab.empty()) return std::nullopt;
  return lab::Lab::start({.hosts = launch::lab_hosts(task.ranks, task.ranks_per_host),
                          .rate = task.lab,
                          .name = fmt::format("bench{}", getpid())});
}

}  // namespace

Stage::Stage(const Task& task, const Session& session) : task_(task), session_(session), lab_(lab_for(task)) {}

/// A contender that hangs (MPICH has been seen to, in MPI_Finalize) must not hang the benchmark. Generous: the budget
/// counts timed calls only, and a call may last longer than its share.
std::vector<std::string> Stage::bounded(const std::string& name, std::vector<std::string> command) const {
  if (name == "ours") return command;  // it bounds itself
  double bytes = 0;
  for (const std::uint64_t size : task_.bytes) bytes += static_cast<double>(size);
  const double rate = task_.bits_per_s > 0 ? task_.bits_per_s / 8 : 100e6;
  const double seconds = 60 + 10 * task_.budget_s * static_cast<double>(task_.bytes.size()) + 100 * bytes / rate;
  std::vector<std::string> words{"timeout", "--foreground", "-k", "5", fmt::format("{:.0f}", seconds)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Outcome Stage::run(const std::string& name, const LineSink& sink) {
  Place place{.program = session_.program,
              .scratch = fmt::format("{}/{}-{}", scratch_.path(), ++runs_, name),
              .interface = lab_ ? "eth0" : "",
              .hosts = {}};
  std::filesystem::create_directory(place.scratch);
  std::vector<Reach> reach;
  for (int rank = 0; lab_ && rank < task_.ranks; ++rank)
    place.hosts.push_back(lab_->address(rank / task_.ranks_per_host));
  for (int host = 0; lab_ && host < lab_->options().hosts; ++host)
    reach.push_back({lab_->address(host), lab_->exec_prefix(host)});
  write_agent(place.scratch + "/agent", reach);

  const Entry entry = entry_of(name, task_, place);
  launch::JobOptions job;
  job.ranks = entry.starts_ranks ? 1 : task_.ranks;
  job.program = bounded(name, entry.command);
  job.lab = lab_ ? &*lab_ : nullptr;
  job.ranks_per_host = task_.ranks_per_host;
  std::deque<std::string> remembered;
  const launch::job::End end = launch::run_job(job, [&](const launch::job::Line& line) {
    if (line.stream == launch::job::Stream::output) return sink(std::string(line.text));
    if (line.stream != launch::job::Stream::error) return;
    session_.log.write(LogLevel::info, fmt::format("{}: {}", name, line.text));
    remembered.emplace_back(line.text);
    if (remembered.size() > kRememberedLines) remembered.pop_front();
  });
  return {.code = end.exit_code(),
          .signal = end.forwarded_signal,
          .words = fmt::format("{}\n{}", end.description(), fmt::join(remembered, "\n"))};
}

}  // namespace syncopate::tools::bench
