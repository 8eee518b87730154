// Rows of the thesis' replay: merged, compared with the machine alone, and with the simulator.
#include "bench/server/thesis.hpp"

#include <gtest/gtest.h>

#include "bench/rows.hpp"
#include "syncopate/error.hpp"

namespace syncopate::test {
namespace {

using tools::bench::predicted;
using tools::bench::replayed_contenders;
using tools::bench::replayed_model;
using tools::bench::ReplayRows;
using tools::bench::ReplayScene;

const ReplayScene kGigabit{.bits_per_s = 1e9};

std::string raw_of(const std::string& contender, const std::string& seconds, const std::string& correct = "true",
                   const std::string& model = "resnet110") {
  return R"({"contender":")" + contender + R"(","model":")" + model + R"(","block_seconds":)" + seconds +
         R"(,"pushed_bytes":10,"pulled_bytes":20,"stalest":1,"correct":)" + correct + "}";
}

TEST(ReplayRows, CompareEveryContenderWithTheMachineAlone) {
  ReplayRows rows(kGigabit);
  EXPECT_TRUE(rows.take(raw_of("wait_free", "[0.2,0.1]")));
  EXPECT_TRUE(rows.take(raw_of("alone", "[0.08]")));
  EXPECT_TRUE(rows.take(raw_of("wait_free", "[0.16]")));
  EXPECT_TRUE(rows.take(raw_of("wait_free", "[2]", "true", "inception_v4_slim")));
  const auto json = rows.json();
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0].at("contender"), "alone");
  EXPECT_EQ(json[0].at("workers"), 1);
  EXPECT_EQ(json[0].at("speedup"), 1.0);
  EXPECT_EQ(json[1].at("step_seconds").at("median"), 0.16);
  EXPECT_EQ(json[1].at("step_seconds").at("n"), 3);
  EXPECT_DOUBLE_EQ(json[1].at("speedup").get<double>(), 4 * 0.08 / 0.16);
  EXPECT_TRUE(json[2].at("speedup").is_null()) << "Inception was not run alone";
  for (const auto& row : json) EXPECT_EQ(row.at("compute"), "sleep") << "a row is complete without its neighbours";
}

TEST(ReplayRows, OfAWrongAnswerSaySo) {
  ReplayRows rows(kGigabit);
  rows.take(raw_of("ssp", "[0.1]"));
  EXPECT_TRUE(rows.all_correct());
  rows.take(raw_of("ssp", "[0.1]", "false"));
  EXPECT_FALSE(rows.all_correct());
  EXPECT_EQ(rows.json().at(0).at("correct"), false);
  EXPECT_NE(rows.table().find("WRONG"), std::string::npos);
}

TEST(ReplayRows, RefuseWhatIsDamagedAndPassOverTheRest) {
  ReplayRows rows(kGigabit);
  EXPECT_FALSE(rows.take("server 0 serves"));
  EXPECT_FALSE(rows.take("{}"));
  EXPECT_THROW(static_cast<void>(rows.take(raw_of("ssp", "[]"))), Corrupt);
  EXPECT_THROW(static_cast<void>(rows.take(raw_of("best", "[1]"))), Corrupt);
  EXPECT_THROW(static_cast<void>(rows.take(raw_of("ssp", "[1]", "true", "vgg16"))), Corrupt);
  EXPECT_THROW(static_cast<void>(rows.take(R"({"block_seconds":[1]})")), Corrupt);
  EXPECT_TRUE(rows.empty());
}

// 2 x 3/4 of the model leave every host, in Ethernet's frames, after 74 ms of computing.
TEST(ReplayPrediction, OfTraditionalTrainingIsComputingAndExchange) {
  const auto row = predicted(replayed_model("resnet110"), replayed_contenders()[1], kGigabit);
  EXPECT_NEAR(row.training.iteration_s, 0.074 + 1.5 * 4 * 1'727'962 * 8e-9 * tools::bench::kEthernetHeaders, 1e-5);
  EXPECT_EQ(predicted(replayed_model("resnet110"), replayed_contenders()[0], kGigabit).training.iteration_s,
            predicted(replayed_model("resnet110"), replayed_contenders()[0], {.bits_per_s = 1e6}).training.iteration_s)
      << "a machine alone needs no network";
}

TEST(ReplayPrediction, OfTheSlowerNetworkIsDilated) {
  for (const auto& contender : replayed_contenders()) {
    const auto row = predicted(replayed_model("resnet110"), contender, kGigabit);
    const auto slow = predicted(replayed_model("resnet110"), contender, {.bits_per_s = 1e8, .dilation = 10});
    EXPECT_NEAR(slow.training.iteration_s / row.training.iteration_s, 10, 1e-4) << contender.name;
  }
}

TEST(ReplayedContenders, AreTheNamedOnes) {
  EXPECT_EQ(replayed_contenders({"all"}).size(), replayed_contenders().size());
  const auto chosen = replayed_contenders({"alone", "traditional"});
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].name, "alone");
  EXPECT_EQ(chosen[1].name, "traditional");
  EXPECT_THROW(static_cast<void>(replayed_contenders({"grpc"})), Misuse);
  EXPECT_THROW(static_cast<void>(replayed_contenders({})), Misuse);
}

// Fig. 5.1: round-robin is the worst placement of GoogLeNet.
TEST(ReplayPrediction, OfGoogLeNetHasItsParametersAndRoundRobinIsItsWorst) {
  const auto& traditional = replayed_contenders()[1];
  const auto model = replayed_model("googlenet");
  const auto lpt = predicted(model, traditional, kGigabit);
  const auto turns = predicted(model, traditional, {.placement = "round_robin", .bits_per_s = 1e9});
  EXPECT_NEAR(lpt.training.compute_s, 0.088, 1e-9);
  EXPECT_NEAR(lpt.pushed_bytes, 4.0 * 6'998'552, 1);
  EXPECT_GT(turns.load_variation, 10 * lpt.load_variation);
  EXPECT_GT(turns.training.iteration_s, 1.5 * lpt.training.iteration_s);
}

TEST(ReplayPrediction, OfAnUnknownModelIsMisuse) { EXPECT_THROW(static_cast<void>(replayed_model("vgg16")), Misuse); }

}  // namespace
}  // namespace syncopate::test
