// Parts of a recipe by themselves: which epoch is whose, steps that are left, the learning rate along a line.
#include <gtest/gtest.h>

#include "recipe/part.hpp"
#include "thrown.hpp"

namespace syncopate::test {
namespace {

using train::Part;

std::vector<Part> parts(const std::string& json) {
  train::Options options;
  options.recipe = std::make_shared<const Recipe>(parse_recipe(json, "r.json"));
  return train::parts_of(options);
}

const std::string kTwo = R"({"parts": [{"epochs": 2, "batch": 4, "learning_rate": [1, 0.5]},
                                       {"epochs": 3, "batch": 5, "codec": "fp16", "resolution": 48}]})";

TEST(Parts, WithoutARecipeAreOneOfAllEpochs) {
  train::Options options{.batch = 7, .accumulate = 3};
  const std::vector<Part> whole = train::parts_of(options);
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(&train::part_at(whole, 1'000'000), &whole[0]);
  EXPECT_EQ(train::samples_per_step(whole[0], 2), 42U);
  options.global_batch = 10;
  EXPECT_EQ(train::samples_per_step(train::parts_of(options)[0], 2), 10U);
}

TEST(Parts, FollowOneAnotherAndTheLastOneStaysBehindTheEnd) {
  const std::vector<Part> two = parts(kTwo);
  ASSERT_EQ(two.size(), 2U);
  for (const std::uint64_t epoch : {0, 1}) EXPECT_EQ(train::part_at(two, epoch).number, 1U);
  for (const std::uint64_t epoch : {2, 4, 5, 99}) EXPECT_EQ(train::part_at(two, epoch).number, 2U);
  EXPECT_EQ(train::text_of(two[0]), "epochs 1 to 2: batch 4, learning rate 1 to 0.5, codec none, exchange allreduce");
  EXPECT_EQ(train::text_of(two[1]), "epochs 3 to 5: 48 pixels, batch 5, codec fp16, exchange allreduce");
}

TEST(Parts, HaveTheFeedbackAndTheDensityThatTheySayAndElseTheRuns) {
  train::Options options;
  options.sync.coding.feedback.kind = FeedbackKind::none;
  options.recipe = std::make_shared<const Recipe>(parse_recipe(
      R"({"parts": [{"epochs": 1, "batch": 1}, {"epochs": 1, "batch": 1, "codec": "topk:0.01", "feedback": "momentum",
                     "warmup_density": [0.25, 40]}]})",
      "r.json"));
  const std::vector<Part> both = train::parts_of(options);
  EXPECT_EQ(both[0].options.sync.coding.feedback.kind, FeedbackKind::none);
  EXPECT_EQ(both[0].options.sync.coding.feedback.warmup_steps, 0U);
  EXPECT_EQ(both[1].options.sync.coding.feedback.kind, FeedbackKind::momentum);
  EXPECT_EQ(both[1].options.sync.coding.feedback.warmup_density, 0.25);
  EXPECT_EQ(both[1].options.sync.coding.feedback.warmup_steps, 40U);
  EXPECT_EQ(train::text_of(both[1]),
            "epoch 2: batch 1, codec topk:0.01, exchange allreduce, feedback momentum, density "
            "from 0.25 in 40 steps");
}

// A recipe's batch is what a rank takes in a step, cut into micro-batches or not.
TEST(Parts, HaveTheBatchOfAStepHoweverItIsCut) {
  train::Options options{.accumulate = 4};
  options.recipe = std::make_shared<const Recipe>(parse_recipe(kTwo, "r.json"));
  EXPECT_EQ(train::samples_per_step(train::parts_of(options)[1], 3), 15U);
}

// 22 samples on 2 ranks: 3 steps of 8 an epoch in the first part, 3 of 10 in the second.
TEST(Parts, CountTheStepsThatAreLeftFromAnyPosition) {
  const std::vector<Part> two = parts(kTwo);
  const auto left = [&](const input::Progress& at) { return train::steps_left(two, at, 22, 2); };
  EXPECT_EQ(left({}), 2 * 3 + 3 * 3);
  EXPECT_EQ(left({1, 0, 8}), 14U);
  EXPECT_EQ(left({5, 1, 16}), 10U);
  EXPECT_EQ(left({6, 2, 0}), 9U);
  EXPECT_EQ(left({14, 4, 20}), 1U);
  EXPECT_EQ(left({15, 5, 0}), 0U);
}

TEST(Parts, HaveARateThatFallsAlongALineFromTheFirstStepToBehindTheLast) {
  const train::RateLine line{1, 0.5, 2, 2};
  EXPECT_EQ(train::learning_rate_at(line, {0, 2, 0}, 100), 1);
  EXPECT_EQ(train::learning_rate_at(line, {0, 2, 50}, 100), 0.875);
  EXPECT_EQ(train::learning_rate_at(line, {0, 3, 0}, 100), 0.75);
  EXPECT_EQ(train::learning_rate_at(line, {9, 4, 0}, 100), 0.5);
  EXPECT_EQ(parts(kTwo)[0].rates->first_epoch, 0U);
  EXPECT_FALSE(parts(kTwo)[1].rates);
  const std::vector<Part> late = parts(R"({"parts": [{"epochs": 2, "batch": 1},
                                                     {"epochs": 1, "batch": 1, "learning_rate": [0.5, 0]}]})");
  EXPECT_EQ(train::learning_rate_at(*late[1].rates, {0, 2, 0}, 100), 0.5);
}

TEST(Parts, NameThemselvesInAMisuse) {
  train::Options options;
  options.recipe_file = "r.json";
  options.recipe = std::make_shared<const Recipe>(parse_recipe(kTwo, "r.json"));
  const train::Part second = train::parts_of(options)[1];
  EXPECT_EQ(thrown<Misuse>([&] { train::in_part(second, [] { throw Misuse("no"); }); }), "r.json, part 2: no");
}

}  // namespace
}  // namespace syncopate::test
