// Policies side by side: options, rows for programs, the table for people.
#include "plan/policies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arguments.hpp"
#include "plan/exchange.hpp"
#include "plan/export.hpp"
#include "syncopate/error.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::plan {
namespace {

struct Options {
  std::string profile, cluster, algorithm, format;
  std::vector<std::string> policies;
  std::string fusion_bytes = "0";
  int ranks = 0;
  ExchangeChoice exchange;
};

struct Question {
  Profile profile;
  Cluster cluster;
  std::vector<Prediction> predictions;
  std::vector<std::string> doubts;  ///< of the links, where they are what there is to go by; of sizes; of coding
  ExchangeChoice exchange{};
};

double largest_bucket(const std::vector<Prediction>& predictions) {
  double largest = 0;
  for (const Prediction& prediction : predictions)
    for (const PredictedBucket& bucket : prediction.buckets)
      largest = std::max(largest, static_cast<double>(bucket.bytes));
  return largest;
}

Question question_of(const Options& options) {
  if (options.profile.empty()) throw Misuse("plan needs a PROFILE, or a subcommand: collective, recipe");
  if (options.cluster.empty()) throw Misuse("plan PROFILE needs --cluster FILE");
  Question question{read_profile(options.profile), read_cluster(options.cluster), {}, {}};
  const auto doubt = [&](std::string words) {
    if (!words.empty()) question.doubts.push_back(std::move(words));
  };
  if (!options.algorithm.empty()) question.cluster.algorithm = options.algorithm;
  doubt(doubt_of_links(question.cluster, options.ranks != 0 ? options.ranks : question.cluster.ranks));
  if (options.ranks != 0 && options.ranks != question.cluster.ranks) {
    question.cluster.ranks = options.ranks;
    question.cluster.costs.clear();  // they were measured on another number of ranks
  }
  PredictOptions predict{.policies = options.policies,
                         .fusion_bytes = parse_bytes(options.fusion_bytes),
                         .law = law_of(options.exchange, question.profile, question.cluster,
                                       options.algorithm.empty() ? "auto" : options.algorithm)};
  question.exchange = options.exchange;
  for (const std::string& text : doubts_of(options.exchange, predict.law)) doubt(text);
  if (!options.format.empty() && predict.policies.empty()) predict.policies = {"exact_dp"};
  question.predictions = predict_policies(question.profile, question.cluster, predict);
  doubt(doubt_of_size(cost_of(question.cluster), question.cluster.ranks, Collective::allreduce,
                      largest_bucket(question.predictions)));
  return question;
}

/// The last layer of each group, 1-based in forward order, ascending.
std::vector<std::size_t> groups_of(const Prediction& prediction) {
  std::vector<std::size_t> groups;
  for (const PredictedBucket& bucket : prediction.buckets) groups.push_back(bucket.last + 1);
  std::ranges::reverse(groups);
  return groups;
}

nlohmann::json row_of(const Prediction& prediction, const Question& question) {
  return {{"policy", prediction.policy},
          {"model", question.profile.model},
          {"ranks", question.cluster.ranks},
          {"codec", question.exchange.codec},
          {"exchange", question.exchange.exchange},
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

void print_table(const Question& question) {
  const Prediction& any = question.predictions.front();
  double bytes = 0;
  for (const ProfileLayer& layer : question.profile.layers) bytes += static_cast<double>(layer.bytes);
  const ExchangeChoice& exchange = question.exchange;
  const std::string way = exchange.is_plain() ? "all-reduce by " + question.cluster.algorithm
                                              : fmt::format("exchange {}, codec {}", exchange.exchange, exchange.codec);
  print_text("{}\n{} layers, {}, computing {} a step; {} ranks, {}\n\n", question.profile.model,
             question.profile.layers.size(), format_bytes(bytes), format_seconds(any.compute_s), question.cluster.ranks,
             way);
  print_text("{:<14}{:>8}{:>12}{:>12}{:>14}   {}\n", "policy", "buckets", "step", "exposed", "over optimum",
             "gains most by");
  for (const Prediction& row : question.predictions)
    print_text("{:<14}{:>8}{:>12}{:>12}{:>12.1f} %   {}\n", row.policy, row.buckets.size(),
               format_seconds(row.iteration_s), format_seconds(row.exposed_s), 100 * row.over_optimum, advice(row));
}

int print_export(const Options& options, const Question& question, const Session& session) {
  const bool is_ddp = options.format == "ddp";
  const char* key = is_ddp ? "bucket_cap_mb_list" : "groups";
  for (const Prediction& prediction : question.predictions) {
    const nlohmann::json value = is_ddp ? ddp_caps(prediction) : horovod_groups(prediction, question.profile);
    if (session.json)
      print_row({{"policy", prediction.policy}, {"export", options.format}, {key, value}});
    else
      print_text("{}={}\n", key, text_of_json(value));
  }
  return 0;
}

int compare(const Options& options, const Session& session) {
  const Question question = question_of(options);
  for (const std::string& doubt : question.doubts) session.log.write(LogLevel::warning, doubt);
  if (!options.format.empty()) return print_export(options, question, session);
  if (!session.json) {
    print_table(question);
    return 0;
  }
  for (const Prediction& prediction : question.predictions) print_row(row_of(prediction, question));
  return 0;
}

}  // namespace

void add_policies(CLI::App& app, Session& session) {
  const auto options = std::make_shared<Options>();
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
