// `syncopate plan PROFILE` and `syncopate simulate` as a user meets them: rows, tables, exports, exit codes.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
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
  for (const char* policy :
       {"wfbp", "single", "fusion", "fusion:ddp", "fusion:64MiB", "fusion:128MiB", "mg_wfbp", "exact_dp", "online"})
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

TEST_F(PlanPolicies, ARecipeIsTheSumOfItsPartsSteps) {
  const std::string recipe = folder_ / "recipe.json";
  std::ofstream(recipe) << R"({"samples": 1000, "parts": [{"epochs": 2, "batch": 50, "samples_per_second": 10},
      {"epochs": 1, "batch": 250, "samples_per_second": 125, "update_s": 1}]})";
  const auto plan_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"plan", "recipe", recipe, "--profile", profile_, "--cluster", cluster_};
    words.insert(words.end(), more.begin(), more.end());
    return syncopate(words);
  };
  const Ended ended = plan_of({"--json"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  std::vector<nlohmann::json> rows;
  for (const std::string& line : lines_of(ended.output)) rows.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("steps"), 2 * 5) << "1000 samples by 4 ranks of 50";
  EXPECT_EQ(rows[1].at("steps"), 1);
  EXPECT_NEAR(rows[0].at("compute_s").get<double>(), 5, 1e-9);
  EXPECT_NEAR(rows[1].at("compute_s").get<double>(), 3, 1e-9);
  const double exchange_s = 1 + 40000008 * 2.5e-7;
  for (const int part : {0, 1}) {
    EXPECT_NEAR(rows[part].at("serial_s").get<double>() - rows[part].at("compute_s").get<double>(), exchange_s, 1e-6);
    EXPECT_GE(rows[part].at("step_s"), rows[part].at("compute_s"));
  }
  EXPECT_NEAR(rows[2].at("seconds").get<double>(),
              10 * rows[0].at("step_s").get<double>() + rows[1].at("step_s").get<double>(), 1e-6);
  EXPECT_NE(plan_of({}).output.find("in all "), std::string::npos);
  std::ofstream(recipe) << R"({"samples": 1000, "parts": [
      {"epochs": 1, "batch": 50, "samples_per_second": 10, "codec": "fp16"},
      {"epochs": 2, "batch": 50, "samples_per_second": 20, "codec": "fp16"}]})";
  const std::string warned = plan_of({}).error, unknown = "the cluster file has no times of codec fp16";
  EXPECT_NE(warned.find(unknown), std::string::npos) << warned;
  EXPECT_EQ(warned.find(unknown), warned.rfind(unknown)) << "once for all parts";
  std::ofstream(recipe) << R"({"samples": 1000, "parts": [{"epochs": 2, "batch": 50}]})";
  EXPECT_EQ(plan_of({}).code, 2);
  EXPECT_NE(plan_of({}).error.find("has no samples_per_second"), std::string::npos);
}

TEST_F(PlanPolicies, TakesTheDensityOfACodecFromANumberOrARun) {
  const std::string run = folder_ / "rank-0.jsonl";
  std::ofstream(run) << R"({"event": "epoch", "sent": [{"gradient": "head.weight", "elements": 10, "density": 0.9}]})"
                        "\n"
                     << R"({"event": "epoch", "sent": [{"gradient": "head.weight", "elements": 90, "density": 0.3},)"
                     << R"( {"gradient": "head.bias", "elements": 10, "density": 0.2}]})"
                        "\n";
  const auto step_s = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--policy", "single", "--codec", "threshold:0.1"});
    return rows(more).at(0).at("iteration_s").get<double>();
  };
  EXPECT_GT(step_s({"--density", "0.3"}), step_s({"--density", "0.03"}));
  EXPECT_NEAR(step_s({"--density", run}), step_s({"--density", "0.29"}), 1e-3 * step_s({"--density", "0.29"}));
  EXPECT_NE(plan({"--codec", "threshold:0.1"}).error.find("--density"), std::string::npos) << "it is assumed";
  EXPECT_EQ(plan({"--codec", "threshold:0.1", "--density", "0.1"}).error.find("--density"), std::string::npos);
  for (const auto& [wrong, code] : {std::pair(std::string("0"), 2), {"1.5", 2}, {profile_, 1}, {folder_ / "no", 1}})
    EXPECT_EQ(plan({"--codec", "threshold:0.1", "--density", wrong}).code, code) << wrong;
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

TEST_F(PlanPolicies, WarnsOfLinksThatMissedWhatWasMeasuredWhereTheyAreAllThereIs) {
  auto cluster = nlohmann::json::parse(file_text(cluster_));
  cluster["links_worst_error"] = 0.42;
  std::ofstream(cluster_) << cluster.dump();
  const Ended on_4 = plan({"--policy", "single"}), on_2 = plan({"--policy", "single", "--ranks", "2"});
  EXPECT_EQ(on_4.error.find("42 %"), std::string::npos) << on_4.error;
  EXPECT_NE(on_2.error.find("42 %"), std::string::npos) << on_2.error;
  EXPECT_EQ(on_2.code, 0);
  const Ended simulated =
      syncopate({"simulate", profile_, "--cluster", cluster_, "--ranks", "4,2", "--policy", "single"});
  EXPECT_NE(simulated.error.find("on 2 ranks costs come from the cluster's links"), std::string::npos)
      << simulated.error;
  EXPECT_EQ(simulated.error.find("on 4 ranks costs"), std::string::npos) << simulated.error;
}

TEST_F(PlanPolicies, SaysThatMeasuredTimesFallAtTheEndOfTheirTable) {
  std::ofstream(cluster_) << R"({"ranks": 4, "costs": {"allreduce": {"table": [[4, 0.5], [1024, 3], [2048, 2]]}}})";
  const std::string fall = "the timings end at 2 KiB; the times fall from 3.00 s at 1 KiB to 2.00 s at 2 KiB";
  const std::string guess = "predicted times and their order are guesses at 19531 times the largest size";
  const Ended planned = plan({"--policy", "single"});
  const Ended simulated = syncopate({"simulate", profile_, "--cluster", cluster_, "--policy", "single"});
  for (const std::string& said : {planned.error, simulated.error}) {
    expect_words(said, {fall, guess});
  }
}

TEST_F(PlanPolicies, ExposesNothingOnOneRankAndRefusesAnAlgorithmThatTheExchangeCannotUse) {
  std::ofstream(cluster_) << R"({"ranks": 4, "links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1}}})";
  const auto simulated = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"simulate", profile_, "--cluster", cluster_, "--policy", "single"});
    return syncopate(more);
  };
  EXPECT_NE(simulated({"--ranks", "1"}).output.find("  0 us"), std::string::npos) << simulated({"--ranks", "1"}).output;
  EXPECT_EQ(simulated({"--exchange", "reduce_broadcast", "--algorithm", "halving_doubling"}).code, 2);
  EXPECT_NE(simulated({"--exchange", "reduce_broadcast", "--algorithm", "linear_pipeline"}).output,
            simulated({"--exchange", "reduce_broadcast", "--algorithm", "mst"}).output);
}

TEST_F(PlanPolicies, RefusesWhatDoesNotExist) {
  EXPECT_EQ(plan({"--policy", "best"}).code, 2);
  EXPECT_EQ(plan({"--export", "csv"}).code, 2);
  EXPECT_EQ(plan({"--ranks", "0"}).code, 2);
  EXPECT_EQ(plan({"--ranks", "2", "--algorithm", "snail"}).code, 2);
  EXPECT_EQ(syncopate({"plan", profile_}).code, 2) << "no cluster";
  EXPECT_EQ(syncopate({"plan", cluster_, "--cluster", cluster_}).code, 2) << "no profile";
  const Ended missing = syncopate({"plan", folder_ / "nothing.json", "--cluster", cluster_, "--json"});
  EXPECT_EQ(missing.code, 2) << "in every command that is given a file";
  EXPECT_EQ(nlohmann::json::parse(missing.output).at("kind"), "Misuse");
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

TEST_F(PlanPolicies, SimulateTellsWhatRankZeroDoesAndFigureDrawsIt) {
  const Ended ended =
      syncopate({"simulate", profile_, "--cluster", cluster_, "--policy", "wfbp,mg_wfbp,dear", "--timeline", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  std::map<std::string, int> tracks;
  for (const std::string& line : lines_of(ended.output)) ++tracks[nlohmann::json::parse(line).value("track", "")];
  EXPECT_EQ(tracks[""], 3) << "a row per policy";
  EXPECT_GE(tracks["backward"], 6) << "two layers each take time, the third none";
  EXPECT_GE(tracks["exchange"], 3 + 1 + 2);
  std::ofstream(folder_ / "rank-0.jsonl") << ended.output;
  const Ended drawn =
      syncopate({"figure", folder_ / "rank-0.jsonl", "--lanes", "--by", "policy", "-o", folder_ / "figure.svg"});
  EXPECT_EQ(drawn.code, 0) << drawn.error;
  EXPECT_NE(file_text(folder_ / "figure.svg").find(">mg_wfbp</text>"), std::string::npos);
}

TEST_F(PlanPolicies, SimulateCutsMessagesWhereLinksAreKnown) {
  std::ofstream(folder_ / "links.json")
      << R"({"ranks": 4, "algorithm": "ring", "links": {"inter": {"alpha_s": 1e-3, "beta_s_per_byte": 1e-8}}})";
  const auto step_s = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"simulate", profile_, "--cluster", folder_ / "links.json", "--policy", "single", "--json"});
    const Ended ended = syncopate(more);
    EXPECT_EQ(ended.code, 0) << ended.error;
    return nlohmann::json::parse(ended.output).at("iteration_s").get<double>();
  };
  EXPECT_LT(step_s({"--segments"}), step_s({}) - 4e-3) << "five of six startups hide behind the wire";
  EXPECT_EQ(syncopate({"simulate", profile_, "--cluster", cluster_, "--segments"}).code, 2) << "measured costs";
}

TEST_F(PlanPolicies, AreReplayedByRanksThatSleep) {
  std::ofstream(folder_ / "short.json") << R"({"model": "short", "forward_s": 0.002, "layers": [
      {"name": "a", "elements": 4096, "backward_s": 0.001}, {"name": "b", "elements": 512, "backward_s": 0.001}]})";
  const Ended ended = syncopate({"bench", "replay", folder_ / "short.json", "--ranks", "2", "--dilation", "2",
                                 "--alpha-us", "200", "--rounds", "1", "--steps", "2", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  int policies = 0;
  for (const std::string& line : lines_of(ended.output)) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row.at("benchmark") != "replay") continue;
    ++policies;
    EXPECT_EQ(row.at("compute"), "sleep") << "every row marks emulated computing";
    EXPECT_NEAR(row.at("delay_seconds").get<double>(), 2e-4, 1e-12);
    EXPECT_EQ(row.at("dilation"), 2);
    EXPECT_GE(row.at("step_seconds").at("min").get<double>(), 8e-3);
    EXPECT_GE(row.at("simulated_s").get<double>(), 8e-3);
  }
  EXPECT_EQ(policies, 5);
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
