// Replay benchmark: one job in a lab that measures its own costs, predicts every policy from them, and runs it.
#include "bench/replay.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "arguments.hpp"
#include "bench/options.hpp"
#include "bench/rows.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "syncopate/error.hpp"
#include "syncopate/simulate.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr int kRepeats = 9;  // calls per size of the cost table

/// Ticks of all cores: busy ones and all, since the machine was started.
std::pair<double, double> core_ticks() {
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  double all = 0, idle = 0, ticks = 0;
  for (int column = 0; column < 8 && file >> ticks; ++column) {
    all += ticks;
    if (column == 3 || column == 4) idle += ticks;
  }
  return {all - idle, all};
}

bool has_rate(const ReplayRequest& request) { return !request.lab.empty() && request.lab != "none"; }

/// The costs that are known before anything is measured are those of an all-reduce on the declared network.
bool is_declared(const ReplayRequest& request) { return has_rate(request) && request.exchange == "allreduce"; }

/// The declared network, before anything is measured.
Cluster declared_cluster(const ReplayRequest& request) {
  return {.ranks = request.ranks,
          .inter = LinkCost{.alpha_s = request.alpha_us * 1e-6,
                            .beta_s_per_byte = 8 * kEthernetHeaders / parse_rate(request.lab),
                            .gamma_s_per_byte = 0},
          .algorithm = request.algorithm};
}

double computing_s(const Profile& profile) {
  double seconds = profile.forward_s;
  for (const ProfileLayer& layer : profile.layers) seconds += layer.backward_s;
  return seconds;
}

double simulated_s(const Profile& profile, const Cluster& cluster, const std::string& policy, bool segments) {
  return simulate_training(profile, cluster, {.policies = {policy}, .segments = segments}).at(0).iteration_s;
}

struct Measured {
  std::map<std::string, std::vector<double>> steps;  ///< by policy
  Cluster cluster;                                   ///< with measured costs
  double busy_share = 0;                             ///< of all cores of this machine, while steps ran
};

Measured measure(const ReplayRequest& request, const Profile& profile, Group& group) {
  Replay replay(group, profile);
  Measured result{.steps = {},
                  .cluster = {.ranks = request.ranks,
                              .algorithm = request.algorithm,
                              .costs = {replay.measure(request.algorithm, kRepeats, request.exchange)}}};
  const auto begin = core_ticks();
  for (int round = 0; round < request.rounds; ++round)
    for (const std::string& policy : parts_of(request.policies)) {
      const ReplayOptions options{
          .policy = policy, .algorithm = request.algorithm, .exchange = request.exchange, .steps = request.steps};
      std::vector<double>& steps = result.steps[policy];
      const std::vector<double> more = replay.run(result.cluster, options);
      steps.insert(steps.end(), more.begin(), more.end());
    }
  const auto end = core_ticks();
  result.busy_share = (end.first - begin.first) / std::max(1.0, end.second - begin.second);
  return result;
}

nlohmann::json row_of(const ReplayRequest& request, const Profile& profile, const Measured& measured,
                      const std::string& policy) {
  const std::vector<double>& steps = measured.steps.at(policy);
  const double simulated = simulated_s(profile, measured.cluster, policy, false);
  return {{"benchmark", "replay"},
          {"policy", policy},
          {"ranks", request.ranks},
          {"rate", has_rate(request) ? nlohmann::json(request.lab) : nlohmann::json()},
          {"compute", "sleep"},
          {"dilation", request.dilation},
          {"delay_seconds", request.alpha_us * 1e-6},
          {"exchange", request.exchange},
          {"algorithm", request.algorithm},
          {"model", profile.model},
          {"compute_s", computing_s(profile)},
          {"step_seconds", timing(steps)},
          {"simulated_s", simulated},
          {"declared_s", is_declared(request)
                             ? nlohmann::json(simulated_s(profile, declared_cluster(request), policy, true))
                             : nlohmann::json()},
          {"error", median(steps) / simulated - 1},
          {"busy_share", measured.busy_share}};
}

/// Ratios of steps to that of the first policy, measured and simulated; and pairs whose simulated order was not met.
struct Verdict {
  std::map<std::string, double> measured, simulated;
  std::vector<std::string> swapped;
};

Verdict verdict_of(const std::vector<nlohmann::json>& rows) {
  constexpr double kGap = 1.05;
  Verdict verdict;
  const auto seconds = [](const nlohmann::json& row) { return row["step_seconds"]["median"].get<double>(); };
  const auto predicted = [](const nlohmann::json& row) { return row["simulated_s"].get<double>(); };
  for (const nlohmann::json& row : rows) {
    verdict.measured[row["policy"]] = seconds(row) / seconds(rows.front());
    verdict.simulated[row["policy"]] = predicted(row) / predicted(rows.front());
    for (const nlohmann::json& other : rows)
      if (predicted(row) > kGap * predicted(other) && seconds(row) <= seconds(other))
        verdict.swapped.push_back(fmt::format("{} was simulated slower than {} and is not",
                                              row["policy"].get<std::string>(), other["policy"].get<std::string>()));
  }
  return verdict;
}

void print_table(const std::vector<nlohmann::json>& rows, const Verdict& verdict, const ReplayRequest& request) {
  print_text("{} replayed on {} ranks{}; {} by {}\n", request.profile, request.ranks,
             request.lab.empty() ? "" : ", each on a host of its own at " + request.lab, request.exchange,
             request.algorithm);
  print_text("computing is sleep, {:g} times as long; every message leaves {:g} us later; machine {:.0f} % busy\n\n",
             request.dilation, request.alpha_us, 100 * rows.front()["busy_share"].get<double>());
  print_text("{:<14}{:>26}{:>11}{:>9}{:>10}{:>18}{:>8}\n", "policy", "step (min..max)", "simulated", "error",
             "declared", "over first: meas.", "sim.");
  for (const nlohmann::json& row : rows) {
    const std::string policy = row["policy"];
    const nlohmann::json& step = row["step_seconds"];
    const nlohmann::json& declared = row["declared_s"];
    print_text("{:<14}{:>26}{:>11.3f}{:>+7.1f} %{:>10}{:>18.3f}{:>8.3f}\n", policy,
               fmt::format("{:.3f} ({:.3f}..{:.3f})", step["median"].get<double>(), step["min"].get<double>(),
                           step["max"].get<double>()),
               row["simulated_s"].get<double>(), 100 * row["error"].get<double>(),
               declared.is_null() ? "-" : fmt::format("{:.3f}", declared.get<double>()), verdict.measured.at(policy),
               verdict.simulated.at(policy));
  }
  for (const std::string& pair : verdict.swapped) print_text("ORDER: {}\n", pair);
}

std::vector<std::string> words_of(const ReplayRequest& request, const std::string& program) {
  const std::map<std::string, std::string> options = {{"--ranks", fmt::format("{}", request.ranks)},
                                                      {"--lab", request.lab},
                                                      {"--dilation", fmt::format("{}", request.dilation)},
                                                      {"--alpha-us", fmt::format("{}", request.alpha_us)},
                                                      {"--algorithm", request.algorithm},
                                                      {"--exchange", request.exchange},
                                                      {"--policy", request.policies},
                                                      {"--rounds", fmt::format("{}", request.rounds)},
                                                      {"--steps", fmt::format("{}", request.steps)}};
  std::vector<std::string> words{program, "bench", "replayer", request.profile};
  for (const auto& [name, value] : options)
    if (!value.empty()) words.insert(words.end(), {name, value});
  return words;
}

}  // namespace

void declare(CLI::App& app, ReplayRequest& request) {
  app.add_option("PROFILE", request.profile, "A model's layer times and sizes (JSON; docs/scheduling.md)")
      ->required()
      ->check(input_file());
  app.add_option("--ranks", request.ranks, "ranks to start")->check(between(2, 64))->capture_default_str();
  app.add_option("--lab", request.lab, "rate of an emulated host per rank, as 1gbit; without: loopback")
      ->type_name("RATE")
      ->check(bit_rate());
  app.add_option("--dilation", request.dilation, "factor by which computing takes longer than in the profile")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option("--alpha-us", request.alpha_us, "microseconds by which every message leaves later")
      ->check(between(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--algorithm", request.algorithm, "of the exchange's collectives")->capture_default_str();
  app.add_option("--exchange", request.exchange,
                 "allreduce; or reduce_broadcast: a reduction to rank 0 and a broadcast from it")
      ->check(one_of("exchange", {"allreduce", "reduce_broadcast"}))
      ->capture_default_str();
  app.add_option("--policy", request.policies, "policies, comma-separated; ratios are to the first")
      ->capture_default_str();
  app.add_option("--rounds", request.rounds, "turns of every policy")->check(between(1, 1000))->capture_default_str();
  app.add_option("--steps", request.steps, "steps per turn")->check(between(1, 100000))->capture_default_str();
}

int run_replayer(const ReplayRequest& request) {
  GroupOptions options;
  options.delay = std::chrono::microseconds(static_cast<long>(request.alpha_us));
  const auto group = Group::join(options);
  const Profile profile = dilated(read_profile(request.profile), request.dilation);
  const Measured measured = measure(request, profile, *group);
  if (group->rank() != 0) return 0;
  print_row({{"benchmark", "cost"}, {"ranks", request.ranks}, {"table", measured.cluster.costs.front().table}});
  for (const std::string& policy : parts_of(request.policies)) print_row(row_of(request, profile, measured, policy));
  return 0;
}

int run_replay_benchmark(const ReplayRequest& request, const Session& session) {
  std::ignore = read_profile(request.profile);  // refused before a lab is built
  std::optional<lab::Lab> lab;
  if (!request.lab.empty())
    lab.emplace(
        lab::Lab::start({.hosts = request.ranks, .rate = request.lab, .name = fmt::format("bench{}", getpid())}));
  launch::JobOptions job;
  job.ranks = request.ranks;
  job.program = words_of(request, session.program);
  job.lab = lab ? &*lab : nullptr;
  std::vector<nlohmann::json> rows;
  std::string errors;
  const launch::job::End end = launch::run_job(job, [&](const launch::job::Line& line) {
    if (line.stream == launch::job::Stream::error) errors += fmt::format("{}\n", line.text);
    const nlohmann::json row = nlohmann::json::parse(line.text, nullptr, false);
    if (line.stream != launch::job::Stream::output || !row.is_object()) return;
    if (session.json) print_row(row);
    if (row.value("benchmark", "") == "replay") rows.push_back(row);
  });
  if (end.exit_code() != 0 || rows.empty()) {
    session.log.write(LogLevel::error, fmt::format("{}\n{}", end.description(), errors));
    return std::max(1, end.exit_code());
  }
  const Verdict verdict = verdict_of(rows);
  if (!session.json)
    print_table(rows, verdict, request);
  else
    print_row({{"benchmark", "replay ratios"},
               {"measured", verdict.measured},
               {"simulated", verdict.simulated},
               {"swapped", verdict.swapped}});
  return 0;
}

}  // namespace syncopate::tools::bench
