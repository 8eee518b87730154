// Predict: compares every policy's partition with the optimum and with a better network.
#include "syncopate/predict.hpp"

#include <algorithm>

#include "simulate/candidate.hpp"
#include "simulate/costs.hpp"

namespace syncopate {

namespace {

using simulate::Candidate;

/// The cost of an exchange and of an agreement.
struct Prices {
  schedule::Cost exchange;
  double agreement_s = 0;
};

struct Network {
  Prices now, twice_the_bandwidth, half_the_latency;
};

/// A cluster, and the law of its exchanges.
struct PricedCluster {
  const Cluster& cluster;
  const ExchangeLaw& law;
  std::uint64_t bytes;
};

Prices prices_of(const PricedCluster& question, const simulate::costs::Change& change = {}) {
  const auto& [cluster, law, bytes] = question;
  return {simulate::costs::cost_of_law(cluster, law, bytes, change), simulate::costs::agreement_s(cluster, change)};
}

std::vector<std::string> labels_of(const PredictOptions& options) {
  if (!options.policies.empty()) return options.policies;
  std::vector<std::string> labels;
  for (const schedule::Policy* policy : options.catalogue.policies()) {
    labels.emplace_back(policy->name);
    if (policy->name == "fusion") labels.insert(labels.end(), {"fusion:ddp", "fusion:64MiB", "fusion:128MiB"});
  }
  return labels;
}

schedule::Evaluation run(const Candidate& candidate, const schedule::Timeline& timeline, const Prices& prices) {
  schedule::Cost cost = prices.exchange;
  if (candidate.decides_late()) cost.agreement_s = prices.agreement_s;
  return evaluate(timeline, candidate.partition(timeline, cost), cost);
}

std::string best_change(const Prediction& prediction) {
  const std::pair<double, const char*> changes[] = {{prediction.with_merging_s, "merging"},
                                                    {prediction.with_bandwidth_s, "bandwidth"},
                                                    {prediction.with_latency_s, "latency"}};
  const auto best = std::ranges::min_element(changes, {}, [](const auto& change) { return change.first; });
  return best->first < 0.99 * prediction.iteration_s ? best->second : "nothing";
}

Prediction predict(const Candidate& candidate, const schedule::Timeline& timeline, const Network& network) {
  const schedule::Evaluation step = run(candidate, timeline, network.now);
  Prediction prediction{.compute_s = step.compute_s, .iteration_s = step.iteration_s, .exposed_s = step.exposed_s};
  for (const schedule::BucketTiming& timing : step.timings)
    prediction.buckets.push_back(
        {timing.bucket.first, timing.bucket.last, timing.bytes, timing.ready_s, timing.begin_s, timing.end_s});
  prediction.with_bandwidth_s = run(candidate, timeline, network.twice_the_bandwidth).iteration_s;
  prediction.with_latency_s = run(candidate, timeline, network.half_the_latency).iteration_s;
  return prediction;
}

}  // namespace

std::vector<Prediction> predict_policies(const Profile& profile, const Cluster& cluster,
                                         const PredictOptions& options) {
  const schedule::Timeline timeline = simulate::timeline_of(profile);
  const std::size_t bytes = bytes_of(timeline, {0, timeline.layers.size() - 1});
  const ExchangeLaw law = options.law ? options.law(cluster.ranks, cluster.ranks_per_host) : ExchangeLaw{};
  const PricedCluster question{cluster, law, bytes};
  const Network network{prices_of(question), prices_of(question, {.per_byte = 0.5}),
                        prices_of(question, {.startup = 0.5})};
  const double optimum_s = run({&schedule::policy_named("exact_dp"), {}}, timeline, network.now).iteration_s;
  std::vector<Prediction> predictions;
  for (const std::string& label : labels_of(options)) {
    Prediction prediction =
        predict(simulate::candidate_of(label, {.fusion_bytes = options.fusion_bytes, .ranks = cluster.ranks},
                                       options.catalogue),
                timeline, network);
    prediction.policy = label;
    prediction.with_merging_s = optimum_s;
    prediction.over_optimum = std::max(0.0, prediction.iteration_s / optimum_s - 1);  // rounding may give -1e-16
    prediction.best_change = best_change(prediction);
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

}  // namespace syncopate
