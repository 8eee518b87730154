// `syncopate plan PROFILE` and `syncopate simulate` as a user meets them: rows, tables, exports, exit codes.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

/// The step of MG-WFBP's counter-example: a large gradient, then two tiny ones within the startup cost of 1 s.
class PlanPolicies : public testing::Test {
 protected:
  PlanPolicies() {
    std::ofstream(profile_) << R"({"model": "three", "forward_s": 0, "layers": [
        {"name": "stem", "elements": 1, "backward_s": 0.9}, {"name": "body", "elements": 1, "backward_s": 0.9},
        {"name": "head", "elements": 10000000, "backward_s": 0}]})";
    std::ofstream(cluster_) << R"({"ranks": 4, "links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1}},
        "costs": {"allreduce": {"affine": {"a_s": 1, "b_s_per_byte": 2.5e-7}}}})";
  }

  [[nodiscard]] Ended plan(std::vector<std::string> more) const {
    more.insert(more.begin(), {"plan", profile_, "--cluster", cluster_});
    return syncopate(more);
  }
  [[nodiscard]] std::vector<nlohmann::json> rows(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const Ended ended = plan(more);
    EXPECT_EQ(ended.code, 0) << ended.error;
    std::vector<nlohmann::json> found;
    for (const std::string& line : lines_of(ended.output)) found.push_back(nlohmann::json::parse(line));
    return found;
  }

  TemporaryFolder folder_;
  const std::string profile_ = folder_ / "profile.json", cluster_ = folder_ / "cluster.json";
};

TEST_F(PlanPolicies, HasARowPerPolicyWithTheKeysOfTheContract) {
  std::set<std::string> policies;
  for (const nlohmann::json& row : rows({})) {
    for (const char* key : {"policy", "groups", "iteration_s", "exposed_s", "over_optimum"})
      EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_EQ(row.at("groups").back(), 3) << "the last layer ends the last group";
    EXPECT_NEAR(row.at("exposed_s").get<double>(), row.at("iteration_s").get<double>() - 1.8, 1e-9);
    policies.insert(row.at("policy"));
  }
  for (const char* policy : {"wfbp", "single", "fusion", "fusion:ddp", "mg_wfbp", "exact_dp", "online"})
    EXPECT_TRUE(policies.contains(policy)) << policy;
}

TEST_F(PlanPolicies, ShowsThatAlgorithm1IsNotOptimal) {
  const auto found = rows({"--policy", "mg_wfbp,exact_dp"});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at("groups"), nlohmann::json({3}));
  EXPECT_NEAR(found[0].at("iteration_s").get<double>(), 12.8, 1e-5);
  EXPECT_NEAR(found[0].at("over_optimum").get<double>(), 12.8 / 12 - 1, 1e-5);
  EXPECT_EQ(found[1].at("groups"), nlohmann::json({2, 3}));
  EXPECT_NEAR(found[1].at("iteration_s").get<double>(), 12.0, 1e-5);
  EXPECT_EQ(found[1].at("over_optimum"), 0);
}

TEST_F(PlanPolicies, PrintsATableForPeople) {
  const Ended ended = plan({});
  ASSERT_EQ(ended.code, 0) << ended.error;
  for (const char* text : {"three", "exact_dp", "over optimum", "12.80 s", "12.00 s"})
    EXPECT_NE(ended.output.find(text), std::string::npos) << text << " in\n" << ended.output;
}

TEST_F(PlanPolicies, ExportsBucketsForOtherFrameworks) {
  EXPECT_EQ(plan({"--export", "ddp"}).output, "bucket_cap_mb_list=[38.14697265625,7.62939453125e-06]\n");
  EXPECT_EQ(plan({"--export", "horovod"}).output, "groups=[[\"head\"],[\"body\",\"stem\"]]\n");
  const auto row = rows({"--export", "ddp", "--policy", "single"}).at(0);
  EXPECT_EQ(row.at("policy"), "single");
  EXPECT_EQ(row.at("bucket_cap_mb_list").size(), 1U);
}

TEST_F(PlanPolicies, OnAnotherNumberOfRanksGoesByTheLinks) {
  const double on_2 = rows({"--policy", "single", "--ranks", "2", "--algorithm", "ring"}).at(0).at("iteration_s");
  EXPECT_NEAR(on_2, 1.8 + 2 + 40000008.0, 1e-3);
}

TEST_F(PlanPolicies, RefusesWhatDoesNotExist) {
  EXPECT_EQ(plan({"--policy", "best"}).code, 2);
  EXPECT_EQ(plan({"--export", "csv"}).code, 2);
  EXPECT_EQ(plan({"--ranks", "0"}).code, 2);
  EXPECT_EQ(plan({"--ranks", "2", "--algorithm", "snail"}).code, 2);
  EXPECT_EQ(syncopate({"plan", profile_}).code, 2) << "no cluster";
  EXPECT_EQ(syncopate({"plan", cluster_, "--cluster", cluster_}).code, 2) << "no profile";
  const Ended missing = syncopate({"plan", folder_ / "nothing.json", "--cluster", cluster_, "--json"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(nlohmann::json::parse(missing.output).at("kind"), "SystemFailure");
}

TEST_F(PlanPolicies, SimulateHasARowPerNumberOfRanksAndPolicy) {
  const Ended ended = syncopate({"simulate", profile_, "--cluster", cluster_, "--ranks", "2,4", "--policy",
                                 "single,dear", "--algorithm", "ring", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto lines = lines_of(ended.output);
  ASSERT_EQ(lines.size(), 4U) << ended.output;
  for (const std::string& line : lines) {
    const nlohmann::json row = nlohmann::json::parse(line);
    for (const char* key : {"policy", "ranks", "iteration_s", "speedup", "exposed_s"})
      EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(nlohmann::json::parse(lines[3]).at("policy"), "dear");
  EXPECT_EQ(nlohmann::json::parse(lines[3]).at("ranks"), 4);
}

TEST_F(PlanPolicies, SimulateRefusesWhatDoesNotExist) {
  const auto simulate = [&](const std::string& option, const std::string& value) {
    return syncopate({"simulate", profile_, "--cluster", cluster_, option, value}).code;
  };
  EXPECT_EQ(simulate("--slow-rank", "1:2"), 0);
  EXPECT_EQ(simulate("--slow-rank", "fast"), 2);
  EXPECT_EQ(simulate("--slow-rank", "4:2"), 2);
  EXPECT_EQ(simulate("--policy", "best"), 2);
  EXPECT_EQ(syncopate({"simulate", profile_}).code, 2);
}

}  // namespace
}  // namespace syncopate::test
