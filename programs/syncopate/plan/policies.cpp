// Policies side by side: options, rows for programs, the table for people.
#include "plan/policies.hpp"

#include <fmt/format.h>

#include "arguments.hpp"
#include "plan/exchange.hpp"
#include "plan/export.hpp"
#include "syncopate/error.hpp"
#include "syncopate/foresight.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::plan {
namespace {

struct PoliciesArguments {
  std::string profile, cluster, algorithm, format;
  std::vector<std::string> policies;
  std::string fusion_bytes = "0";
  int ranks = 0;
  ExchangeOptions exchange;
};

struct ComparedPlans {
  Profile profile;
  ExchangeChoice exchange;
  ComparedPolicies compared;
};

ComparedPlans answer_of(const PoliciesArguments& options) {
  if (options.profile.empty()) throw Misuse("plan needs a PROFILE, or a subcommand: collective, recipe");
  if (options.cluster.empty()) throw Misuse("plan PROFILE needs --cluster FILE");
  ComparedPlans answer{read_profile(options.profile), choice_of(options.exchange), {}};
  CompareOptions compare{.policies = options.policies,
                         .fusion_bytes = parse_bytes(options.fusion_bytes),
                         .exchange = answer.exchange,
                         .algorithm = options.algorithm};
  if (options.ranks != 0) compare.ranks = options.ranks;
  if (!options.format.empty() && compare.policies.empty()) compare.policies = {"exact_dp"};
  answer.compared = compare_policies(answer.profile, read_cluster(options.cluster), compare);
  return answer;
}

nlohmann::json row_of(const Prediction& prediction, const ComparedPlans& answer) {
  return {{"policy", prediction.policy},
          {"model", answer.profile.model},
          {"ranks", answer.compared.cluster.ranks},
          {"codec", answer.exchange.codec},
          {"exchange", answer.exchange.exchange},
          {"groups", groups_of(prediction)},
          {"iteration_s", prediction.iteration_s},
          {"compute_s", prediction.compute_s},
          {"exposed_s", prediction.exposed_s},
          {"over_optimum", prediction.over_optimum},
          {"with_merging_s", prediction.with_merging_s},
          {"with_bandwidth_s", prediction.with_bandwidth_s},
          {"with_latency_s", prediction.with_latency_s},
          {"best_change", prediction.best_change}};
}

/// The gain of the best change, as text.
std::string advice(const Prediction& prediction) {
  const auto gain = [&](double seconds) { return 100 * (1 - seconds / prediction.iteration_s); };
  if (prediction.best_change == "merging")
    return fmt::format("merging as exact_dp does: -{:.0f} %", gain(prediction.with_merging_s));
  if (prediction.best_change == "bandwidth")
    return fmt::format("twice the bandwidth: -{:.0f} %", gain(prediction.with_bandwidth_s));
  if (prediction.best_change == "latency")
    return fmt::format("half the latency: -{:.0f} %", gain(prediction.with_latency_s));
  return "nothing";
}

void print_table(const ComparedPlans& answer) {
  const Prediction& any = answer.compared.predictions.front();
  double bytes = 0;
  for (const ProfileLayer& layer : answer.profile.layers) bytes += static_cast<double>(layer.bytes);
  const ExchangeChoice& exchange = answer.exchange;
  const std::string way = exchange.is_plain() ? "all-reduce by " + answer.compared.cluster.algorithm
                                              : fmt::format("exchange {}, codec {}", exchange.exchange, exchange.codec);
  print_text("{}\n{} layers, {}, computing {} a step; {} ranks, {}\n\n", answer.profile.model,
             answer.profile.layers.size(), format_bytes(bytes), format_seconds(any.compute_s),
             answer.compared.cluster.ranks, way);
  print_text("{:<14}{:>8}{:>12}{:>12}{:>14}   {}\n", "policy", "buckets", "step", "exposed", "over optimum",
             "gains most by");
  for (const Prediction& row : answer.compared.predictions)
    print_text("{:<14}{:>8}{:>12}{:>12}{:>12.1f} %   {}\n", row.policy, row.buckets.size(),
               format_seconds(row.iteration_s), format_seconds(row.exposed_s), 100 * row.over_optimum, advice(row));
}

/// Those of an exchange of all gradients at once.
void print_phases(const std::vector<ExchangePhase>& phases) {
  if (phases.empty()) return;
  print_text("\n{:<34}{:>12}{:>12}\n", "phase (all gradients at once)", "bytes", "time");
  for (const auto& [what, bytes, seconds] : phases)
    print_text("{:<34}{:>12}{:>12}\n", what, format_bytes(bytes), format_seconds(seconds));
}

nlohmann::json row_of(const ExchangePhase& phase) {
  return {{"phase", phase.what}, {"bytes", phase.bytes}, {"seconds", phase.seconds}};
}

int print_export(const PoliciesArguments& options, const ComparedPlans& answer, const Session& session) {
  const bool is_ddp = options.format == "ddp";
  const char* key = is_ddp ? "bucket_cap_mb_list" : "groups";
  for (const Prediction& prediction : answer.compared.predictions) {
    const nlohmann::json value =
        is_ddp ? nlohmann::json(ddp_caps(prediction)) : horovod_groups(prediction, answer.profile);
    if (session.json)
      print_row({{"policy", prediction.policy}, {"export", options.format}, {key, value}});
    else
      print_text("{}={}\n", key, text_of_json(value));
  }
  return 0;
}

int compare(const PoliciesArguments& options, const Session& session) {
  const ComparedPlans answer = answer_of(options);
  for (const std::string& warning : answer.compared.warnings) session.log.write(LogLevel::warning, warning);
  if (!options.format.empty()) return print_export(options, answer, session);
  if (!session.json) {
    print_table(answer);
    print_phases(answer.compared.phases);
    return 0;
  }
  for (const Prediction& prediction : answer.compared.predictions) {
    nlohmann::json row = row_of(prediction, answer);
    for (const ExchangePhase& phase : answer.compared.phases) row["phases"].push_back(row_of(phase));
    print_row(row);
  }
  return 0;
}

}  // namespace

void add_policies(CLI::App& app, Session& session) {
  const auto options = std::make_shared<PoliciesArguments>();
  app.add_option("PROFILE", options->profile, "A model's layer times and sizes (JSON; docs/scheduling.md)")
      ->check(input_file());
  app.add_option("--cluster", options->cluster, "The network's numbers (JSON; docs/scheduling.md)")
      ->type_name("FILE")
      ->check(input_file());
  app.add_option("--policy", options->policies,
                 "Policies, comma-separated; fusion:SIZE and fusion:ddp too (default: every one)")
      ->delimiter(',');
  app.add_option("--fusion-bytes", options->fusion_bytes, "Bucket size of the fusion policy")
      ->type_name("BYTES")
      ->check(byte_size(1))
      ->default_str("by model and ranks");
  app.add_option("--algorithm", options->algorithm, "Algorithm of the all-reduce (default: the cluster's)");
  add_exchange(app, options->exchange);
  app.add_option("--ranks", options->ranks, "Ranks instead of the cluster's; its links, not its measured costs, count")
      ->check(at_least(1));
  app.add_option("--export", options->format,
                 "Buckets as another framework takes them: ddp (bucket_cap_mb_list), horovod (groups); of exact_dp, or "
                 "of the policies given")
      ->check(one_of("format", {"ddp", "horovod"}));
  app.callback([options, &session, &app] {
    if (app.get_subcommands().empty()) session.action = [options, &session] { return compare(*options, session); };
  });
}

}  // namespace syncopate::tools::plan
