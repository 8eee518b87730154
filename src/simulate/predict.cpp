// Predict: every policy's partition on one timeline and cost, beside the best one and beside a better network.
#include "syncopate/predict.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/require.hpp"
#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"
#include "simulate/cluster_cost.hpp"
#include "syncopate/units.hpp"

namespace syncopate {

namespace {

struct Network {
  schedule::Cost now, twice_the_bandwidth, half_the_latency;
};

/// A policy with its options, as a label names it: "online", "fusion", "fusion:64MiB", "fusion:ddp".
struct Candidate {
  const schedule::Policy* policy = nullptr;
  schedule::PolicyOptions options;
};

Candidate candidate_of(const std::string& label, const PredictOptions& options) {
  const std::size_t colon = label.find(':');
  Candidate candidate{&schedule::policy_named(label.substr(0, colon)), {.fusion_bytes = options.fusion_bytes}};
  if (colon != std::string::npos) {
    base::require(candidate.policy->name == "fusion", "policy '{}': only fusion takes a size, as in fusion:64MiB",
                  label);
    const std::string size = label.substr(colon + 1);
    if (size == "ddp")
      candidate.options = {.fusion_bytes = 25 << 20, .first_fusion_bytes = 1 << 20, .fuses_past = true};
    else
      candidate.options.fusion_bytes = parse_bytes(size);
  }
  base::require(candidate.options.fusion_bytes > 0, "policy '{}': a bucket of 0 bytes; allowed: 1 and more", label);
  return candidate;
}

std::vector<std::string> labels_of(const PredictOptions& options) {
  if (!options.policies.empty()) return options.policies;
  std::vector<std::string> labels;
  for (const schedule::Policy* policy : schedule::policies()) {
    labels.emplace_back(policy->name);
    if (policy->name == "fusion") labels.insert(labels.end(), {"fusion:ddp", "fusion:64MiB", "fusion:128MiB"});
  }
  return labels;
}

schedule::Timeline timeline_of(const Profile& profile) {
  base::require(!profile.layers.empty(), "the profile has no layers");
  schedule::Timeline timeline{.forward_s = profile.forward_s, .layers = {}};
  for (const ProfileLayer& layer : profile.layers)
    timeline.layers.push_back({layer.name, layer.bytes, DType::f32, layer.backward_s});
  return timeline;
}

schedule::Evaluation run(Candidate candidate, const schedule::Timeline& timeline, const schedule::Cost& cost) {
  candidate.options.cost = cost;
  return evaluate(timeline, candidate.policy->partition(timeline, candidate.options), cost);
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
  for (const schedule::Passage& passage : step.passages)
    prediction.buckets.push_back(
        {passage.bucket.first, passage.bucket.last, passage.bytes, passage.ready_s, passage.begin_s, passage.end_s});
  prediction.with_bandwidth_s = run(candidate, timeline, network.twice_the_bandwidth).iteration_s;
  prediction.with_latency_s = run(candidate, timeline, network.half_the_latency).iteration_s;
  return prediction;
}

}  // namespace

std::vector<Prediction> predict_policies(const Profile& profile, const Cluster& cluster,
                                         const PredictOptions& options) {
  const schedule::Timeline timeline = timeline_of(profile);
  const std::size_t bytes = bytes_of(timeline, {0, timeline.layers.size() - 1});
  const Network network{simulate::cost_of_cluster(cluster, bytes),
                        simulate::cost_of_cluster(cluster, bytes, {.per_byte = 0.5}),
                        simulate::cost_of_cluster(cluster, bytes, {.startup = 0.5})};
  const double optimum_s = run({&schedule::policy_named("exact_dp"), {}}, timeline, network.now).iteration_s;
  std::vector<Prediction> predictions;
  for (const std::string& label : labels_of(options)) {
    Prediction prediction = predict(candidate_of(label, options), timeline, network);
    prediction.policy = label;
    prediction.with_merging_s = optimum_s;
    prediction.over_optimum = std::max(0.0, prediction.iteration_s / optimum_s - 1);  // rounding may say -1e-16
    prediction.best_change = best_change(prediction);
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

}  // namespace syncopate
