// `syncopate simulate PROFILE`: training steps of many ranks in virtual time, a row per number of ranks and policy.
#include "syncopate/simulate.hpp"

#include <fmt/format.h>

#include <charconv>

#include "arguments.hpp"
#include "command.hpp"
#include "plan/exchange.hpp"
#include "plan/servers.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/foresight.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::command {
namespace {

struct SimulateArguments {
  std::string profile, cluster, algorithm;
  std::string fusion_bytes = "0";
  std::vector<std::string> slow_ranks, slow_hosts;
  SimulateOptions simulate;
  tools::plan::ExchangeOptions exchange;
  tools::plan::ServerChoice servers;
};

/// "3:1.5": number 3 takes 1.5 times as long; "3:5:0.1": in a tenth of its steps 5 times as long.
Handicap handicap_of(std::string_view option, const std::string& text, bool may_have_share) {
  Handicap handicap;
  const char* const end = text.data() + text.size();
  const auto [colon, no_number] = std::from_chars(text.data(), end, handicap.which);
  bool is_read = no_number == std::errc{} && colon != end && *colon == ':';
  const char* at = colon;
  for (double* field : {&handicap.factor, &handicap.share}) {
    if (!is_read || at == end) break;
    const auto [rest, no_field] = std::from_chars(at + 1, end, *field);
    is_read = no_field == std::errc{} && (rest == end || (*rest == ':' && field == &handicap.factor && may_have_share));
    at = rest;
  }
  if (is_read) return handicap;
  throw Misuse(fmt::format("--{} '{}' is not understood; allowed: NUMBER:FACTOR{}, as 3:1.5", option, text,
                           may_have_share ? "[:SHARE]" : ""));
}

nlohmann::json row_of(const Simulation& row, const tools::plan::ExchangeOptions& choice) {
  return {{"policy", row.policy},       {"ranks", row.ranks},
          {"codec", choice.codec},      {"exchange", choice.exchange},
          {"algorithm", row.algorithm}, {"iteration_s", row.iteration_s},
          {"speedup", row.speedup},     {"exposed_s", row.exposed_s},
          {"compute_s", row.compute_s}, {"efficiency", row.speedup / row.ranks}};
}

/// One bar of a timeline; `syncopate figure --lanes` draws them.
nlohmann::json row_of(const Simulation& row, const Span& span) {
  return {{"policy", row.policy},    {"ranks", row.ranks},  {"track", span.track}, {"name", span.name},
          {"begin_s", span.begin_s}, {"end_s", span.end_s}, {"bytes", span.bytes}};
}

void print_table(const Profile& profile, const SimulateArguments& options, const std::string& algorithm,
                 const std::vector<Simulation>& rows) {
  print_text("{}\ncomputing {} a step; exchange {}, codec {}\n\n{:>6}  {:<14}{:>12}{:>12}{:>10}{:>12}\n", profile.model,
             format_seconds(rows.front().compute_s), options.exchange.exchange, options.exchange.codec, "ranks",
             "policy", "step", "exposed", "speed-up", "efficiency");
  for (const Simulation& row : rows)
    print_text("{:>6}  {:<14}{:>12}{:>12}{:>10.2f}{:>10.1f} %\n", row.ranks, row.policy,
               format_seconds(row.iteration_s), format_seconds(row.exposed_s), row.speedup,
               100 * row.speedup / row.ranks);
  for (const Simulation& row : rows)
    if (row.algorithm != algorithm)
      print_text("{} on {} ranks: reduce-scatter and all-gather by {}, because {} does not offer both\n", row.policy,
                 row.ranks, row.algorithm, algorithm);
}

void run_servers(const SimulateArguments& options, const Session& session, const Profile& profile,
                 const Cluster& cluster) {
  const SimulatedServers simulated =
      simulate_server_exchange(profile, cluster, options.simulate, tools::plan::scene_of(options.servers),
                               options.exchange.codec, options.servers.answers);
  for (const std::string& warning : simulated.warnings) session.log.write(LogLevel::warning, warning);
  tools::plan::print_servers(profile, simulated.rows, session.json);
}

int run(SimulateArguments options, const Session& session) {
  const Profile profile = read_profile(options.profile);
  Cluster cluster = read_cluster(options.cluster);
  if (!options.algorithm.empty()) cluster.algorithm = options.algorithm;
  options.simulate.fusion_bytes = parse_bytes(options.fusion_bytes);
  for (const std::string& text : options.slow_ranks)
    options.simulate.slow_ranks.push_back(handicap_of("slow-rank", text, true));
  for (const std::string& text : options.slow_hosts)
    options.simulate.slow_hosts.push_back(handicap_of("slow-host", text, false));
  if (options.exchange.exchange == kParameterServer) return run_servers(options, session, profile, cluster), 0;
  const Progress progress(session, "simulate");
  options.simulate.progress = [&](std::string_view policy, int ranks) {
    progress.show(fmt::format("{} on {} ranks", policy, ranks));
  };
  const SimulatedTraining simulated = simulate_exchange(profile, cluster, options.simulate,
                                                        tools::plan::choice_of(options.exchange), options.algorithm);
  progress.clear();
  for (const std::string& warning : simulated.warnings) session.log.write(LogLevel::warning, warning);
  if (!session.json) {
    print_table(profile, options, cluster.algorithm, simulated.rows);
    return 0;
  }
  for (const Simulation& row : simulated.rows) {
    print_row(row_of(row, options.exchange));
    for (const Span& span : row.timeline) print_row(row_of(row, span));
  }
  return 0;
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<SimulateArguments>();
  SimulateOptions& simulate = options->simulate;
  app.add_option("PROFILE", options->profile, "A model's layer times and sizes (JSON; docs/scheduling.md)")
      ->required()
      ->check(input_file());
  app.add_option("--cluster", options->cluster, "The network's numbers (JSON)")
      ->type_name("FILE")
      ->required()
      ->check(input_file());
  app.add_option("--ranks", simulate.ranks, "Numbers of ranks, comma-separated (default: the cluster's)")
      ->check(at_least(1))
      ->delimiter(',');
  app.add_option("--policy", simulate.policies,
                 "Policies, comma-separated; fusion:SIZE, fusion:ddp and dear too. With\n"
                 "--exchange parameter_server: traditional, wait_free, front_first")
      ->delimiter(',');
  app.add_option("--fusion-bytes", options->fusion_bytes, "Bucket size of the fusion policy")
      ->type_name("BYTES")
      ->check(byte_size(1))
      ->default_str("by model and ranks");
  app.add_option("--algorithm", options->algorithm, "Algorithm of the all-reduce (default: the cluster's)");
  tools::plan::add_exchange(app, options->exchange);
  tools::plan::add_servers(app, options->servers);
  app.add_option("--noise", simulate.noise, "Standard deviation of layer times over their mean")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--steps", simulate.steps, "Steps to average with noise")->check(at_least(1))->capture_default_str();
  app.add_option("--seed", simulate.seed, "Seed of the noise and of the slow steps")
      ->check(at_least(std::uint64_t{0}))
      ->capture_default_str();
  app.add_option(
         "--slow-rank", options->slow_ranks,
         "RANK:FACTOR[:SHARE] computes that much slower, in this share of its steps (as train --slow); comma-separated")
      ->delimiter(',');
  app.add_option("--slow-host", options->slow_hosts, "HOST:FACTOR has a port that much slower; comma-separated")
      ->delimiter(',');
  app.add_flag("--segments", simulate.segments,
               "Cut messages as the collectives do, so that latencies overlap; without: alpha + n beta each");
  app.add_flag("--timeline", simulate.timeline, "With --json: rows of what rank 0 does in the last step");
  app.callback([options, &app, &session] {
    tools::plan::require_servers(app, options->exchange);
    session.action = [options, &session] { return run(*options, session); };
  });
}

}  // namespace

extern constinit const Command simulate;
constinit const Command simulate{"simulate", "Training steps of many ranks in virtual time, by policy", define};

}  // namespace syncopate::tools::command
