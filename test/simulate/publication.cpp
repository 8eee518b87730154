// The publication: MG-WFBP's simulated 64 nodes (Fig. 9) and its 8-node log, from published inputs, number by number.
// Printed there: GoogLeNet 1.78x over WFBP and 1.35x over SyncEASGD, ResNet-50 1.75x and 1.45x.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"
#include "syncopate/error.hpp"
#include "syncopate/predict.hpp"

namespace syncopate {
namespace {

std::map<std::string, Prediction> predictions_of(const std::string& profile, const Cluster& cluster) {
  std::map<std::string, Prediction> found;
  for (Prediction& prediction : predict_policies(read_profile(DATA_FOLDER "/profile/" + profile + ".json"), cluster))
    found[prediction.policy] = std::move(prediction);
  return found;
}

Cluster k80(int ranks) {
  Cluster cluster = read_cluster(DATA_FOLDER "/cluster/k80_10gbe.json");
  cluster.ranks = ranks;
  return cluster;
}

/// The authors' script charges 2N messages, their paper 2(N-1).
Cluster k80_as_in_the_script(int ranks) {
  Cluster cluster = k80(ranks);
  cluster.inter->alpha_s *= ranks / (ranks - 1.0);
  return cluster;
}

std::vector<std::size_t> last_layers(const Prediction& prediction) {
  std::vector<std::size_t> layers;
  for (const PredictedBucket& bucket : prediction.buckets) layers.insert(layers.begin(), bucket.last + 1);
  return layers;
}

void expect_ms(const std::map<std::string, Prediction>& rows, const std::map<std::string, double>& expected) {
  for (const auto& [policy, ms] : expected) EXPECT_NEAR(rows.at(policy).iteration_s * 1e3, ms, 0.06) << policy;
}

double ratio(const std::map<std::string, Prediction>& rows, const char* slower, const char* faster) {
  return rows.at(slower).iteration_s / rows.at(faster).iteration_s;
}

TEST(Publication, GoogLeNetOn64NodesIsAsPrinted) {
  const auto rows = predictions_of("googlenet_k80", k80(64));
  EXPECT_NEAR(ratio(rows, "wfbp", "mg_wfbp"), 1.73, 0.0173) << "printed: 1.78";
  EXPECT_NEAR(ratio(rows, "single", "mg_wfbp"), 1.35, 0.0135) << "printed: 1.35";
  EXPECT_NEAR(ratio(rows, "wfbp", "exact_dp"), 1.91, 0.01) << "what the paper could have printed";
  EXPECT_NEAR(ratio(rows, "single", "exact_dp"), 1.49, 0.01);
  EXPECT_NEAR(rows.at("mg_wfbp").over_optimum, 0.108, 0.0005) << "0 by the theorem";
  EXPECT_LT(rows.at("online").over_optimum, 0.04);
  expect_ms(rows, {{"wfbp", 704.4}, {"single", 550.1}, {"mg_wfbp", 407.8}, {"exact_dp", 368.0}});
}

TEST(Publication, ResNet50On64NodesIsAsPrinted) {
  const auto rows = predictions_of("resnet50_k80", k80(64));
  EXPECT_NEAR(ratio(rows, "wfbp", "mg_wfbp"), 1.75, 0.05 * 1.75);
  EXPECT_NEAR(ratio(rows, "single", "mg_wfbp"), 1.45, 0.05 * 1.45);
  EXPECT_NEAR(rows.at("mg_wfbp").over_optimum, 0.078, 0.0005);
  EXPECT_LT(rows.at("online").over_optimum, 0.04);
  const auto script = predictions_of("resnet50_k80", k80_as_in_the_script(64));
  expect_ms(script, {{"wfbp", 1287.1}, {"single", 1103.3}, {"mg_wfbp", 744.0}, {"exact_dp", 690.5}});
  EXPECT_NEAR(ratio(script, "wfbp", "mg_wfbp"), 1.730, 0.0005);
  EXPECT_NEAR(ratio(script, "single", "mg_wfbp"), 1.483, 0.0005);
}

TEST(Publication, RegressionValuesHoldToTheDigit) {
  Cluster cluster{.ranks = 64, .costs = {{.a_s = 5701.5e-6, .b_s_per_byte = 4.417e-9}}};
  const auto rows = predictions_of("googlenet_k80", cluster);
  const double forward_s = read_profile(DATA_FOLDER "/profile/googlenet_k80.json").forward_s;
  EXPECT_NEAR((rows.at("mg_wfbp").iteration_s - forward_s) * 1e3, 305.108, 0.0005);
  EXPECT_NEAR((rows.at("exact_dp").iteration_s - forward_s) * 1e3, 265.336, 0.0005);
  EXPECT_EQ(last_layers(rows.at("mg_wfbp")), (std::vector<std::size_t>{12, 46, 64}));
  EXPECT_EQ(last_layers(rows.at("exact_dp")), (std::vector<std::size_t>{5, 38, 53, 63, 64}));
}

TEST(Publication, WithFewerNodesWfbpWinsOverSingleAndTheLinesCross) {
  const std::map<int, std::map<std::string, double>> googlenet_ms = {
      {4, {{"wfbp", 308.5}, {"single", 488.5}, {"mg_wfbp", 308.5}, {"exact_dp", 308.5}}},
      {8, {{"wfbp", 359.6}, {"single", 518.8}, {"mg_wfbp", 318.2}, {"exact_dp", 317.9}}},
      {16, {{"wfbp", 420.9}, {"single", 534.6}, {"mg_wfbp", 337.0}, {"exact_dp", 336.9}}},
      {32, {{"wfbp", 521.1}, {"single", 543.5}, {"mg_wfbp", 363.5}, {"exact_dp", 350.2}}},
      {64, {{"wfbp", 710.2}, {"single", 550.2}, {"mg_wfbp", 483.0}, {"exact_dp", 368.5}}}};
  for (const auto& [ranks, expected] : googlenet_ms)
    expect_ms(predictions_of("googlenet_k80", k80_as_in_the_script(ranks)), expected);
  const auto at_16 = predictions_of("resnet50_k80", k80(16)), at_64 = predictions_of("resnet50_k80", k80(64));
  EXPECT_GT(ratio(at_16, "single", "wfbp"), 1.3);
  EXPECT_LT(ratio(at_64, "single", "wfbp"), 0.9);
}

TEST(Publication, Algorithm1JumpsWhereTheStartupCrossesAGap) {
  const auto step_ms = [](double a_us) {
    const Cluster cluster{.ranks = 64, .costs = {{.a_s = a_us * 1e-6, .b_s_per_byte = 4.416715e-9}}};
    return predictions_of("googlenet_k80", cluster).at("mg_wfbp").iteration_s * 1e3;
  };
  EXPECT_NEAR(step_ms(5759), 407.9, 0.1);
  EXPECT_NEAR(step_ms(5791), 483.0, 0.1);
}

TEST(Publication, TheMeasuredTableOf8NodesIsTheIntroductionsExample) {
  const Cluster cluster = read_cluster(DATA_FOLDER "/cluster/mpi_10gbe_8.json");
  ASSERT_EQ(cluster.costs.size(), 1U);
  const auto& table = cluster.costs[0].table;
  EXPECT_EQ(table.size(), 266U);
  const auto at = [&](double bytes) {
    return std::ranges::lower_bound(table, bytes, {}, &std::pair<double, double>::first)->second;
  };
  EXPECT_NEAR(at(200e3), 1.5e-3, 0.05e-3) << "exchanging 200 KB takes about 1.5 ms";
  EXPECT_NEAR(at(400e3), 1.8e-3, 0.15e-3) << "400 KB only about 1.8 ms";
}

TEST(Planner, PlansAThousandLayersFarBelowFiftyMilliseconds) {
  schedule::Timeline timeline{.forward_s = 0.1, .layers = {}};
  for (std::size_t i = 0; i < 1000; ++i)
    timeline.layers.push_back({"layer", (i * 7919) % 100003 + 1, 1e-4 + 1e-6 * static_cast<double>(i % 97)});
  const std::vector<MeasuredCost> costs = read_cluster(DATA_FOLDER "/cluster/mpi_10gbe_8.json").costs;
  schedule::CostInputs inputs;
  for (const auto& [bytes, seconds] : costs[0].table) inputs.points.push_back({bytes, seconds});
  const schedule::Cost cost = schedule::cost_model_named("table").cost(inputs);
  const auto begin = std::chrono::steady_clock::now();
  const schedule::Partition partition = schedule::policy_named("exact_dp").partition(timeline, {.cost = cost});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", std::to_string(taken.count() * 1e3));
  EXPECT_TRUE(schedule::illegal(partition, 1000).empty());
  EXPECT_LT(taken.count(), 5) << "a hundred times the goal: this machine may be busy, or watched by a sanitizer";
}

TEST(Planner, SaysWhatWouldGainMost) {
  const auto rows = predictions_of("googlenet_k80", k80(64));
  EXPECT_EQ(rows.at("single").best_change, "merging");
  EXPECT_EQ(rows.at("exact_dp").best_change, "bandwidth");
  EXPECT_EQ(predictions_of("googlenet_k80", k80(1)).at("wfbp").best_change, "nothing");
  for (const auto& [policy, row] : rows) {
    EXPECT_NEAR(row.with_merging_s, rows.at("exact_dp").iteration_s, 1e-12) << policy;
    EXPECT_NEAR(row.exposed_s, row.iteration_s - row.compute_s, 1e-12) << policy;
    EXPECT_GE(row.over_optimum, 0) << policy;
  }
}

TEST(Planner, TakesFusionInAnySize) {
  const Profile profile = read_profile(DATA_FOLDER "/profile/resnet50_k80.json");
  const auto rows = predict_policies(profile, k80(64), {.policies = {"fusion:1MiB", "fusion:ddp", "fusion"}});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].policy, "fusion:1MiB");
  EXPECT_GT(rows[0].buckets.size(), rows[2].buckets.size());
  EXPECT_GE(rows[1].buckets[0].bytes, 1U << 20);
  EXPECT_GE(rows[1].buckets[1].bytes, 25U << 20);
  EXPECT_THROW(static_cast<void>(predict_policies(profile, k80(64), {.policies = {"wfbp:1MiB"}})), Misuse);
  EXPECT_THROW(static_cast<void>(predict_policies(profile, k80(64), {.policies = {"fusion:0"}})), Misuse);
  EXPECT_THROW(static_cast<void>(predict_policies(profile, k80(64), {.policies = {"best"}})), Misuse);
}

}  // namespace
}  // namespace syncopate
