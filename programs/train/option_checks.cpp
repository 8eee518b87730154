// Checks of combinations of options, before any file is opened.
#include "option_checks.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "require.hpp"
#include "syncopate/tooling/combinations.hpp"
#include "syncopate/tooling/names.hpp"
#include "syncopate/tooling/settings.hpp"
#include "syncopate/tooling/shelves.hpp"
#include "update/optimizer.hpp"

namespace syncopate::train {
namespace {

void require_entry(std::string_view shelf, std::string_view name) {
  std::vector<std::string_view> known;
  for (const ShelfEntry& entry : shelf_entries()) {
    if (entry.shelf != shelf) continue;
    if (entry.name == name) return;
    known.push_back(entry.name);
  }
  if (shelf == "exchange") known.push_back("parameter_server");
  throw Misuse(unknown_name(shelf, name, known));
}

void check_servers(const Options& o) {
  if (!o.is_served()) {
    const WorkerOptions usual;
    for (const auto& setting : worker_settings())
      require(setting.flag.empty() || setting.text(o.worker) == setting.text(usual),
              "{} with --exchange {}; allowed: with parameter_server", setting.flag, o.sync.exchange);
    return;
  }
  require_entry("consistency", o.worker.consistency.substr(0, o.worker.consistency.find(':')));
  require_entry("placement", o.worker.placement);
  require_entry("codec", o.worker.answers.substr(0, o.worker.answers.find(':')));
  require(o.cluster.empty() && codec_ways(o.sync.coding.codec).size() == 1,
          "--cluster and --codec auto:... with --exchange parameter_server; allowed: without --cluster, one codec");
}

void check_cache(const Options& o) {
  require(o.cache_folder.empty() == (o.cache_disk_bytes == 0),
          "--cache-folder and --cache-disk need each other: give a folder and the bytes to use of it");
  const bool caches = o.cache_bytes > 0 || !o.cache_folder.empty();
  require(o.cache_decoded_bytes == 0 || caches,
          "--cache-decoded keeps the decoded form of images that the cache holds; give also --cache with the bytes of "
          "the encoded images, or --cache-folder and --cache-disk");
  const bool any = caches || o.origin_rate > 0;
  require(!any || model_named(o.model).input == DataKind::images,
          "--cache, --cache-folder and --origin-rate with --model {}, which trains on text in memory; allowed: with "
          "models of images",
          o.model);
}

void check_optimizer(const Options& o) {
  const bool sgd = o.optimizer == "sgd", resting = o.momentum == 0.0;
  require(!o.nesterov || sgd, "--nesterov with --optimizer {}; allowed: with sgd", o.optimizer);
  require(!o.nesterov || !resting, "--nesterov needs a --momentum above 0");
  require(o.sync.coding.feedback.kind != FeedbackKind::momentum || sgd,
          "--feedback momentum with --optimizer {}; allowed: with sgd", o.optimizer);
  require(o.sync.coding.feedback.kind != FeedbackKind::momentum || !resting,
          "--feedback momentum without momentum; allowed: with a --momentum above 0");
  require_allowed(optimizer_options(o));
  require(!o.share_norms || is_layer_wise(optimizer_options(o).rule),
          "--share-norms with --optimizer {}, which has no norms; allowed: with lars, lamb", o.optimizer);
  const bool several_update =
      o.sync.exchange != "none" && !o.is_served() && updater_of(o.sync.exchange) != Updater::root;
  require(!o.share_norms || several_update,
          "--share-norms with --exchange {}, where no other rank updates the same weights; allowed: without",
          o.sync.exchange);
  require(sgd || o.learning_rate || !o.profile.empty(),
          "--optimizer {} needs a --lr{}: the models' own rates are sgd's", o.optimizer,
          o.recipe ? ", or a learning_rate in every part" : "");
}

}  // namespace

void check_effect(const CLI::App& app, const std::vector<const Options*>& parts) {
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  const auto any = [&](bool (*holds)(const Options&)) {
    return std::ranges::any_of(parts, [&](const Options* part) { return holds(*part); });
  };
  const Options& o = *parts.front();
  if (given("--policy") && !any([](const Options& part) { return !part.is_served(); }))
    require_policy(o.sync.exchange, o.sync.policy);
  require(!given("--fusion-bytes") || o.sync.policy == "fusion",
          "--fusion-bytes has no effect with --policy {}; allowed: with --policy fusion", o.sync.policy);
  require(!given("--fusion-bytes") || any([](const Options& part) { return !part.is_served(); }),
          "--fusion-bytes has no effect with --exchange parameter_server; leave it out");
  require(!given("--check-every") || any([](const Options& part) { return plans_with_times(part.sync.policy); }),
          "--check-every has no effect with --policy {}, which does not use times; leave it out", o.sync.policy);
  require(!given("--broadcast-every") ||
              any([](const Options& part) { return part.sync.exchange == "allreduce_broadcast"; }),
          "--broadcast-every has no effect with --exchange {}; allowed: with --exchange allreduce_broadcast",
          o.sync.exchange);
  require(!given("--decay") || given("--milestones"),
          "--decay has no effect without --milestones: the steps at which the learning rate is multiplied by it");
  require(!given("--force") || given("--cluster"), "--force has no effect without --cluster");
}

void check(const Options& o) {
  (void)model_named(o.model);
  require(!o.data.empty() || !o.profile.empty(),
          "--data is required: a folder of images, fashion-mnist, or a text file or folder");
  require(o.profile.empty() || o.steps.value_or(kProfiledSteps) >= kProfiledSteps,
          "--steps {} with --profile; allowed: {} or more", o.steps.value_or(0), kProfiledSteps);
  require_entry("policy", o.sync.policy);
  for (const std::string& way : codec_ways(o.sync.coding.codec)) require_entry("codec", way.substr(0, way.find(':')));
  if (!o.is_served()) require_entry("exchange", o.sync.exchange);
  if (o.sync.algorithm != "auto") require_entry("algorithm", o.sync.algorithm);
  check_optimizer(o);
  check_servers(o);
  check_cache(o);
  require(o.global_batch == 0 || o.global_batch >= o.accumulate,
          "--global-batch {} is not a multiple of --accumulate {}", o.global_batch, o.accumulate);
}

}  // namespace syncopate::train
