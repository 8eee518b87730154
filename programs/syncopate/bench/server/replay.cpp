// Replay: the lab, and a job in it for each model and contender of the thesis.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "bench/options.hpp"
#include "bench/server/benchmark.hpp"
#include "bench/server/thesis.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "launch/sibling.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

void require_allowed(const ServerRequest& request) {
  if (request.replay != "thesis") throw Misuse(fmt::format("there is no replay '{}'; allowed: thesis", request.replay));
  if (request.lab.empty())
    throw Misuse("--replay needs --lab RATE, the rate of the emulated hosts' ports; the thesis had 1gbit");
  if (parts_of(request.models).empty())
    throw Misuse("--models is empty; allowed: resnet110, googlenet, inception_v4_slim");
  for (const std::string& model : parts_of(request.models)) static_cast<void>(replayed_model(model));
  static_cast<void>(replayed_contenders(parts_of(request.contenders)));
}

class Replays final {
 public:
  Replays(const ServerRequest& request, const Session& session, const ReplayScene& scene, ReplayRows& rows)
      : request_(request),
        session_(session),
        scene_(scene),
        rows_(rows),
        contenders_(replayed_contenders(parts_of(request.contenders))),
        server_(launch::path_of(launch::kServer, session)),
        worker_(launch::path_of(launch::kBenchServer, session)),
        progress_(session, "bench server"),
        lab_(lab::Lab::start(
            {.hosts = request.workers, .rate = request.lab, .name = fmt::format("bench{}", getpid())})) {}

  /// The exit code of the first job that failed, 0 if none did.
  int run() {
    for (int round = 0; round < request_.rounds; ++round)
      for (const std::string& model : parts_of(request_.models))
        for (const ReplayedContender& contender : contenders_) {
          progress_.show(fmt::format("round {}/{}, {}, {}", round + 1, request_.rounds, model, contender.name));
          if (const int code = run_one(replayed_model(model), contender); code != 0) return code;
        }
    progress_.clear();
    return 0;
  }

 private:
  int run_one(const ReplayedModel& model, const ReplayedContender& contender) {
    const bool is_alone = contender.flow == "alone";
    launch::JobOptions job;
    job.ranks = is_alone ? 1 : request_.workers;
    job.lab = &lab_;
    job.servers = is_alone ? 0 : request_.servers;
    job.server_program = server_;
    job.program = {worker_,
                   "replay",
                   "--architecture=" + model.name,
                   "--contender=" + contender.name,
                   "--flow=" + contender.flow,
                   "--consistency=" + contender.consistency,
                   "--codec=" + contender.codec,
                   "--answers=" + contender.answers,
                   "--placement=" + scene_.placement,
                   fmt::format("--step-seconds={}", model.step_s * scene_.dilation),
                   fmt::format("--blocks={}", request_.steps)};
    std::string errors;
    const launch::job::End end = launch::run_job(job, [&](const launch::job::Line& line) {
      if (line.stream == launch::job::Stream::error) errors += fmt::format("{}\n", line.text);
      if (line.stream == launch::job::Stream::output) rows_.take(std::string(line.text));
    });
    if (end.exit_code() == 0) return 0;
    progress_.clear();
    session_.log.write(LogLevel::error,
                       fmt::format("{}, {}: {}\n{}", model.name, contender.name, end.description(), errors));
    return end.exit_code();
  }

  const ServerRequest& request_;
  const Session& session_;
  const ReplayScene& scene_;
  ReplayRows& rows_;
  const std::vector<ReplayedContender> contenders_;
  const std::string server_, worker_;  ///< paths of the programs
  Progress progress_;
  lab::Lab lab_;
};

}  // namespace

void require_replayed(const CLI::App& app, const ServerRequest& request) {
  const bool replays = !request.replay.empty();
  if (const std::vector<std::string> allowed{"all", "grpc", "none"};
      !replays && std::ranges::find(allowed, request.contenders) == allowed.end())
    throw Misuse(
        fmt::format("--contenders {}; allowed without --replay: {}", request.contenders, fmt::join(allowed, ", ")));
  for (const char* option : {"--bytes", "--tables", "--replicas"})
    if (replays && app.count(option) > 0)
      throw Misuse(fmt::format("{} is not for --replay, whose models are the thesis'", option));
  for (const char* option : {"--models", "--placement", "--dilation"})
    if (!replays && app.count(option) > 0) throw Misuse(fmt::format("{} is for --replay thesis", option));
}

int run_server_replay(const ServerRequest& request, const Session& session) {
  require_allowed(request);
  const ReplayScene scene{.workers = request.workers,
                          .servers = request.servers,
                          .placement = request.placement,
                          .bits_per_s = parse_rate(request.lab),
                          .dilation = request.dilation};
  for (const std::string& model : parts_of(request.models))  // wrong options are reported before anything is started
    static_cast<void>(predicted(replayed_model(model), replayed_contenders().front(), scene));
  ReplayRows rows(scene);
  if (const int code = Replays(request, session, scene, rows).run(); code != 0) return code;
  if (rows.empty()) throw SystemFailure("no contender finished a single row");
  if (session.json)
    for (const nlohmann::json& row : rows.json()) print_row(row);
  else
    print_text(
        "computing emulated by sleeping; {} workers and {} servers on emulated hosts with ports of {}, placement "
        "{}; predictions at the line's rate\n{}",
        request.workers, request.servers, request.lab, request.placement, rows.table());
  return rows.all_correct() ? 0 : 1;
}

}  // namespace syncopate::tools::bench
