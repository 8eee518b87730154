// Foresight: the law of an exchange given by name, predictions and simulations under it, and what makes them doubtful.
#include "syncopate/foresight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/require.hpp"
#include "syncopate/plan.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {

namespace {

std::vector<Gradient> gradients_of(const Profile& profile, const ExchangeChoice& choice) {
  std::vector<Gradient> gradients;
  for (const ProfileLayer& layer : profile.layers) {
    const std::size_t elements = layer.bytes / sizeof(float);
    gradients.push_back({.name = layer.name,
                         .elements = elements,
                         .rows = rows_of(layer),
                         .density = choice.density ? choice.density(layer.name) : 0});
  }
  return gradients;
}

/// Warnings; an empty text is none.
class Warnings final {
 public:
  void add(std::string text) {
    if (!text.empty()) texts_.push_back(std::move(text));
  }
  void add(std::vector<std::string> texts) {
    for (std::string& text : texts) add(std::move(text));
  }
  /// Where a bucket is larger than the measured sizes.
  void add_those_of(const std::vector<Prediction>& predictions, const Cluster& cluster) {
    if (predictions.empty()) return;
    double largest = 0;
    for (const Prediction& prediction : predictions)
      for (const PredictedBucket& bucket : prediction.buckets)
        largest = std::max(largest, static_cast<double>(bucket.bytes));
    add(warning_about_size(cost_of(cluster), cluster.ranks, Collective::allreduce, largest));
  }
  [[nodiscard]] std::vector<std::string> taken() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
};

/// The buckets of a simulation whose sizes measured costs cover: those on the cluster's own number of ranks. `dear` has
/// none of a partition.
std::vector<Prediction> measured_partitions(const Profile& profile, const Cluster& cluster,
                                            const SimulateOptions& options) {
  const bool has_own_ranks =
      options.ranks.empty() || std::ranges::find(options.ranks, cluster.ranks) != options.ranks.end();
  PredictOptions predict{.policies = options.policies, .fusion_bytes = options.fusion_bytes, .law = options.law};
  std::erase(predict.policies, "dear");
  if (cluster.costs.empty() || !has_own_ranks || predict.policies.empty() != options.policies.empty()) return {};
  return predict_policies(profile, cluster, predict);
}

std::string warning_about_coding(const std::string& codec) {
  return fmt::format(
      "the cluster file has no times of codec {}, and 0 s are assumed; `syncopate fit --codec {}` measures it", codec,
      codec);
}

/// Legs of equal kind that follow one another, such as the levels of a merge, are one phase.
std::vector<ExchangePhase> phases_of(const Cluster& cluster, const ExchangeLaw& law, double bytes) {
  std::vector<ExchangePhase> phases;
  const auto total = static_cast<std::uint64_t>(bytes);
  for (const ExchangeLeg& leg : law.legs) {
    const std::string_view kind = leg.messages > 0 ? "messages" : name_of(leg.collective);
    const std::string_view where = leg.scope == Scope::host     ? " within hosts"
                                   : leg.scope == Scope::across ? " between hosts"
                                                                : "";
    const double size = (leg.share * bytes + leg.fixed_bytes) * std::max(1, leg.messages);
    const double seconds = exchange_cost(cluster, cluster.ranks, total, {.legs = {leg}}).table.back().second;
    std::string what = fmt::format("{}{}", kind, where);
    if (phases.empty() || phases.back().what != what) phases.push_back({.what = std::move(what)});
    phases.back().bytes += size;
    phases.back().seconds += seconds;
  }
  if (law.coding_s_per_byte > 0) phases.push_back({"coding", bytes, law.coding_s_per_byte * bytes});
  return phases;
}

}  // namespace

ExchangeLawOf law_of(const ExchangeChoice& choice, const Profile& profile, const Cluster& cluster,
                     const std::string& algorithm) {
  if (choice.is_plain()) return {};
  const SynchronizerOptions options{.coding = {.codec = choice.codec},
                                    .exchange = choice.exchange,
                                    .algorithm = algorithm.empty() ? "auto" : algorithm};
  const auto law = [gradients = gradients_of(profile, choice), options, cluster](int ranks, int ranks_per_host) {
    Cluster here = cluster;
    here.ranks = ranks;
    here.ranks_per_host = ranks_per_host;
    return exchange_law(gradients, options, here);
  };
  static_cast<void>(law(cluster.ranks, cluster.ranks_per_host));  // unknown names throw at once
  return law;
}

std::vector<std::string> warnings_about_law(const ExchangeChoice& choice, const ExchangeLawOf& law) {
  if (!law) return {};
  std::vector<std::string> texts;
  const ExchangeLaw of_one = law(1, 1);
  if (!of_one.coding_is_known) texts.push_back(warning_about_coding(choice.codec));
  if (!of_one.density_is_known)
    texts.push_back(
        fmt::format("the share of elements that codec {} sends depends on the gradients, and 1 to 1.5 % are assumed; "
                    "`plan` and `simulate` take the share or the rows of a run by --density",
                    choice.codec));
  return texts;
}

ComparedPolicies compare_policies(const Profile& profile, Cluster cluster, const CompareOptions& options) {
  const int ranks = options.ranks.value_or(cluster.ranks);
  base::require(ranks >= 1, "{} ranks; allowed: 1 or more", ranks);
  Warnings warnings;
  warnings.add(warning_about_links(cluster, ranks));
  if (!options.algorithm.empty()) cluster.algorithm = options.algorithm;
  if (ranks != cluster.ranks) {
    cluster.ranks = ranks;
    cluster.costs.clear();  // they were measured on another number of ranks
  }
  const PredictOptions predict{.policies = options.policies,
                               .fusion_bytes = options.fusion_bytes,
                               .law = law_of(options.exchange, profile, cluster, options.algorithm)};
  warnings.add(warnings_about_law(options.exchange, predict.law));
  std::vector<Prediction> predictions = predict_policies(profile, cluster, predict);
  warnings.add_those_of(predictions, cluster);
  std::vector<ExchangePhase> phases;
  if (predict.law) {
    double bytes = 0;
    for (const ProfileLayer& layer : profile.layers) bytes += static_cast<double>(layer.bytes);
    phases = phases_of(cluster, predict.law(cluster.ranks, cluster.ranks_per_host), bytes);
  }
  return {std::move(cluster), std::move(predictions), std::move(phases), warnings.taken()};
}

std::vector<std::size_t> groups_of(const Prediction& prediction) {
  std::vector<std::size_t> groups;
  for (const PredictedBucket& bucket : prediction.buckets) groups.push_back(bucket.last + 1);
  std::ranges::reverse(groups);
  return groups;
}

// PyTorch closes a bucket with the parameter that makes it reach its cap, which it keeps in whole bytes; the quotient
// by a power of two is exact, so the cap is reached by the bucket's last parameter and by none before it.
std::vector<double> ddp_caps(const Prediction& prediction) {
  std::vector<double> caps;
  for (const PredictedBucket& bucket : prediction.buckets)
    caps.push_back(static_cast<double>(bucket.bytes) / (1 << 20));
  return caps;
}

SimulatedTraining simulate_exchange(const Profile& profile, Cluster cluster, SimulateOptions options,
                                    const ExchangeChoice& choice, const std::string& algorithm) {
  if (!algorithm.empty()) cluster.algorithm = algorithm;
  options.law = law_of(choice, profile, cluster, algorithm);
  Warnings warnings;
  warnings.add(warnings_about_law(choice, options.law));
  std::vector<Simulation> rows = simulate_training(profile, cluster, options);
  for (const int ranks : options.ranks.empty() ? std::vector{cluster.ranks} : options.ranks)
    warnings.add(warning_about_links(cluster, ranks));
  warnings.add_those_of(measured_partitions(profile, cluster, options), cluster);
  return {std::move(rows), warnings.taken()};
}

SimulatedServers simulate_server_exchange(const Profile& profile, const Cluster& cluster,
                                          const SimulateOptions& options, ServerScene scene, const std::string& updates,
                                          const std::string& answers) {
  Warnings warnings;
  const auto cost_of_coding = [&](const std::string& codec) {
    const std::optional<CodingCost> cost = coding_cost(cluster, codec, options.catalogue);
    if (!cost) warnings.add(warning_about_coding(codec));
    return cost.value_or(CodingCost{.codec = codec});
  };
  scene.update_bytes = expected_updates(profile, updates);
  scene.answer_bytes = expected_answers(profile, answers);
  scene.update_coding = cost_of_coding(updates);
  scene.answer_coding = answers == updates ? scene.update_coding : cost_of_coding(answers);
  std::vector<ServerSimulation> rows = simulate_servers(profile, cluster, options, scene);
  for (const int ranks : options.ranks.empty() ? std::vector{cluster.ranks} : options.ranks)
    warnings.add(warning_about_links(cluster, ranks));
  return {std::move(rows), warnings.taken()};
}

}  // namespace syncopate
