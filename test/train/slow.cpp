// A rank that --slow names sleeps in its steps, and its rows count the sleep; the rows of others have none.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "jobs.hpp"

namespace syncopate::test {
namespace {

class Slow : public TrainingJobs {
 protected:
  /// The rows "step" that rank `rank` kept.
  [[nodiscard]] std::vector<nlohmann::json> steps_of(int rank) const {
    std::ifstream kept(run + "/rank-" + std::to_string(rank) + ".jsonl");
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(kept, line);) {
      auto row = nlohmann::json::parse(line);
      if (row.value("event", "") == "step") found.push_back(std::move(row));
    }
    return found;
  }
  const std::string run = folder / "run";
};

bool sleeps(const nlohmann::json& row) { return row.contains("slept_s") && row.at("slept_s") > 0.0; }

TEST_F(Slow, RankSleepsInEveryStepAndTheOthersInNone) {
  const Ended ended = train(2, "--model linear --steps 4 --slow 1:2 --out " + run);
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto fast = steps_of(0), slow = steps_of(1);
  ASSERT_EQ(fast.size(), 4U);
  ASSERT_EQ(slow.size(), 4U);
  EXPECT_EQ(std::ranges::count_if(slow, sleeps), 4);
  for (const auto& row : fast) EXPECT_FALSE(row.contains("slept_s")) << row;
}

/// A slow processor computes longer, and waits no longer than others: here a forward pass waits for the last step's
/// weights.
TEST_F(Slow, RankDoesNotSleepForTheTimeThatItWaits) {
  const Ended ended = train(2, "--model linear --exchange sharded --steps 6 --slow 1:3 --out " + run);
  ASSERT_EQ(ended.code, 0) << ended.error;
  for (const auto& row : steps_of(1))
    EXPECT_NEAR(row.at("slept_s").get<double>(), 3 * (3 - 1) * row.at("forward_s").get<double>(), 1e-6) << row;
}

// Steps are drawn with the seed, so two runs sleep in the same steps.
TEST_F(Slow, RankSleepsInTheSameShareOfItsStepsAgain) {
  std::vector<std::vector<bool>> slept;
  for (int again = 0; again < 2; ++again) {
    std::filesystem::remove_all(run);
    const Ended ended = train(1, "--model linear --epochs 1 --batch 4 --slow 0:1.5:0.5 --out " + run);
    ASSERT_EQ(ended.code, 0) << ended.error;
    slept.emplace_back();
    for (const auto& row : steps_of(0)) slept.back().push_back(sleeps(row));
  }
  EXPECT_EQ(slept[0].size(), 20U);
  EXPECT_EQ(slept[0], slept[1]);
  const auto some = std::ranges::count(slept[0], true);
  EXPECT_TRUE(some > 0 && some < 20) << some;
}

}  // namespace
}  // namespace syncopate::test
