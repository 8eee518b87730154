// Training under every policy, profiles of the training program, and cluster files that cannot be used.
#include <gtest/gtest.h>

#include <fstream>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

class TrainingPolicies : public TrainingJobs {
 protected:
  TrainingPolicies() : TrainingJobs("--model resnet20 --batch 2 --steps 13") {}
};

TEST_F(TrainingPolicies, EveryOneTrainsAllRanksAlike) {
  for (const char* policy : {"wfbp", "single", "fusion", "mg_wfbp", "exact_dp", "online"}) {
    const Ended ended = train(3, std::string("--policy ") + policy);
    ASSERT_EQ(ended.code, 0) << policy << ended.error;
    std::set<std::string> digests;
    for (const auto& end : rows(ended, "end")) digests.insert(end.at("digest").get<std::string>());
    EXPECT_EQ(digests.size(), 1U) << policy;
    const auto steps = rows(ended, "step");
    ASSERT_EQ(steps.size(), 13U);
    EXPECT_GT(steps.back().at("predicted_s").get<double>(), 0) << policy;
    EXPECT_FALSE(steps.back().contains("measuring"));
    const bool weighs = std::string(policy) == "mg_wfbp" || std::string(policy) == "exact_dp";
    EXPECT_EQ(steps[8].contains("measuring"), weighs) << policy;
  }
}

TEST_F(TrainingPolicies, TheReportShowsThePlanBesideWhatHappened) {
  const std::string run = folder / "run";
  ASSERT_EQ(train(2, "--policy exact_dp --out " + run).code, 0);
  const Ended report = syncopate({"report", run, "--json"});
  ASSERT_EQ(report.code, 0) << report.error;
  EXPECT_GT(nlohmann::json::parse(report.output).at("predicted_s").get<double>(), 0);
  EXPECT_NE(file_text(run + "/report.html").find("<h2>Planned and actual</h2>"), std::string::npos);
  const auto buckets = nlohmann::json::parse(file_text(run + "/run.json")).at("buckets");
  EXPECT_EQ(buckets.back().at("first"), 0);
}

TEST_F(TrainingPolicies, AClusterFileThatCannotBeUsedIsNamed) {
  const std::string cluster = folder / "cluster.json";
  const Ended missing = train(1, "--policy exact_dp --cluster " + cluster);
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE((missing.error + missing.output).find("cluster.json"), std::string::npos) << missing.error;
  std::ofstream(cluster) << R"({"ranks": 4, "links": {"inter": {"alpha_s": -1, "beta_s_per_byte": 1e-9}}})";
  const Ended damaged = train(1, "--policy exact_dp --cluster " + cluster);
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE((damaged.error + damaged.output).find("alpha_s"), std::string::npos) << damaged.error;
}

TEST_F(TrainingPolicies, TakeCostsFromAClusterFileAndMeasureTimesOnly) {
  const std::string cluster = folder / "cluster.json";
  std::ofstream(cluster) << R"({"ranks": 2, "links": {"inter": {"alpha_s": 1e-4, "beta_s_per_byte": 1e-9}}})";
  const Ended ended = train(2, "--policy mg_wfbp --cluster " + cluster);
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto steps = rows(ended, "step");
  ASSERT_EQ(steps.size(), 13U);
  EXPECT_TRUE(steps[4].contains("measuring"));
  EXPECT_FALSE(steps[5].contains("measuring"));
}

TEST(TrainingProfile, OfTheModelHasItsLayersAndTheirTimes) {
  const TemporaryFolder folder;
  const std::string file = folder / "profile.json";
  const Ended ended = syncopate(
      {"run",     "-n", "2",       "--", SYNCOPATE_PROGRAM, "profile", "--model", "transformer", "--layers", "1",
       "--width", "32", "--heads", "2",  "--context",       "8",       "--batch", "2",           "-o",       file});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto profile = nlohmann::json::parse(file_text(file));
  EXPECT_EQ(profile.at("ranks"), 2);
  EXPECT_EQ(profile.at("threads"), 1);
  EXPECT_EQ(profile.at("steps"), 20);
  EXPECT_GT(profile.at("forward_s").get<double>(), 0);
  EXPECT_EQ(profile["layers"].back()["name"], "head");
  EXPECT_EQ(profile["layers"].back()["elements"], 32 * 256 + 256) << "weight and bias are one layer";
  double backward_s = 0;
  for (const auto& layer : profile["layers"]) backward_s += layer.at("backward_s").get<double>();
  EXPECT_GT(backward_s, 0);
  EXPECT_LT(backward_s, profile["both_passes_s"]["max"].get<double>());
  const std::string cluster = folder / "cluster.json";
  std::ofstream(cluster) << R"({"ranks": 4, "links": {"inter": {"alpha_s": 1e-4, "beta_s_per_byte": 1e-9}}})";
  EXPECT_EQ(syncopate({"plan", file, "--cluster", cluster}).code, 0);
}

TEST(TrainingProfile, OfTooFewStepsIsMisuse) {
  expect_misuse(syncopate({"profile", "--model", "linear", "--steps", "19", "-o", "/dev/null"}), {"20"});
}

}  // namespace
}  // namespace syncopate::test
