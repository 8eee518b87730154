// Recipes that cannot be trained: every wrong use is an error before the first step, with the part and what is allowed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

class RecipeErrors : public TrainingJobs {
 protected:
  RecipeErrors() : TrainingJobs("--model resnet20") {}
  [[nodiscard]] std::string by(const std::string& parts) const {
    std::ofstream(recipe) << R"({"parts": [)" << parts << "]}";
    return "--recipe " + recipe + " ";
  }
  void expect_refused(const std::string& words, const std::string& says) const {
    const Ended ended = train(2, words);
    expect_misuse(ended, {says});
    EXPECT_TRUE(rows(ended, "step").empty()) << words << ": it was refused after it had begun";
  }
  const std::string recipe = folder / "recipe.json";
};

const std::string kGood = R"({"epochs": 1, "batch": 40})";

TEST_F(RecipeErrors, AnOptionThatTheRecipeSetsIsRefusedAndBothAreNamed) {
  const std::string words = by(R"({"epochs": 1, "batch": 40, "resolution": 32, "learning_rate": [0.1, 0]})");
  for (const std::string given :
       {"--batch 4", "--global-batch 8", "--epochs 2", "--codec fp16", "--exchange sharded", "--algorithm ring",
        "--resolution 32", "--lr 0.1", "--warmup 2", "--milestones 3", "--decay 0.5"})
    expect_refused(words + given, given.substr(0, given.find(' ')) + " with --recipe " + recipe + ", whose parts set");
  expect_refused(words + "--profile " + file, "--recipe with --profile");
}

/// A recipe of one good part with these options (JSON).
class OptionsOfRecipes : public RecipeErrors {
 protected:
  [[nodiscard]] std::string with(const std::string& options) const {
    std::ofstream(recipe) << R"({"options": )" << options << R"(, "parts": [)" << kGood << "]}";
    return "--recipe " + recipe + " ";
  }
};

TEST_F(OptionsOfRecipes, AreThoseOfTheCommandLine) {
  EXPECT_EQ(digest(1, with(R"({"optimizer": "lars", "trust": 0.01, "weight-decay": 0, "augment": true})") + "--lr 0.1"),
            digest(1, "--optimizer lars --trust 0.01 --weight-decay 0 --augment --lr 0.1 --epochs 1 --batch 40"));
  EXPECT_EQ(digest(1, with(R"({"augment": false})")), digest(1, by(kGood)));
}

TEST_F(OptionsOfRecipes, AreRefusedWithTheFileIfTheyAreWrongOrGivenTwice) {
  const std::string place = recipe + ", options: ";
  expect_refused(with(R"({"optimiser": "lars"})"), place + "option of a recipe 'optimiser' is unknown; allowed: ");
  expect_refused(with(R"({"data": "elsewhere"})"), place + "option of a recipe 'data' is unknown");
  expect_refused(with(R"({"momentum": 2})"), place + "--momentum");
  expect_refused(with(R"({"augment": "maybe"})"), place);
  expect_refused(with(R"({"optimizer": "lars"})"), "--optimizer lars needs a --lr");
  expect_refused(with(R"({"momentum": 0.5})") + "--momentum 0.5",
                 "--momentum with --recipe " + recipe + ", whose options set momentum; allowed: one of them");
}

TEST_F(RecipeErrors, WhatTheRecipeLeavesOpenIsTheCommandLines) {
  const std::string words = by(kGood);
  EXPECT_EQ(digest(1, words + "--lr 0.03 --resolution 48 --warmup 0"),
            digest(1, "--epochs 1 --batch 40 --lr 0.03 --resolution 48 --warmup 0"));
  EXPECT_EQ(digest(1, words + "--steps 1"), digest(1, "--batch 40 --steps 1"));
}

TEST_F(RecipeErrors, APartThatCannotBeIsToldBeforeTheFirstStep) {
  const std::pair<std::string, std::string> wrong[] = {
      {R"("codec": "topq")", "codec 'topq' is unknown"},
      {R"("codec": "topk:7")", "density is '7'"},
      {R"("exchange": "allreducE")", "exchange 'allreducE' is unknown"},
      {R"("algorithm": "rign")", "algorithm 'rign' is unknown"},
      {R"("exchange": "sharded", "codec": "fp16")", "allowed: codec 'none' only"},
      {R"("exchange": "sharded", "algorithm": "mst")", "reduce_scatter algorithm 'mst' is unknown"},
      {R"("codec": "auto:topk:0.1+none")", "without --cluster"},
      {R"("resolution": 16)", "takes images of 28 pixels each way and more, and these have 16: give another"},
      {R"("exchange": "none")", "exchange none in a recipe of 2 parts"},
      {R"("exchange": "parameter_server")", "exchange parameter_server in a recipe of 2 parts"},
  };
  for (const auto& [part, says] : wrong)
    expect_refused(by(kGood + R"(, {"epochs": 1, "batch": 40, )" + part + "}"), recipe + ", part 2: ");
  for (const auto& [part, says] : wrong)
    expect_refused(by(kGood + R"(, {"epochs": 1, "batch": 40, )" + part + "}"), says);
  const std::string served = R"({"epochs": 1, "batch": 40, "exchange": "parameter_server")";
  expect_refused(by(served + "}, " + served + R"(, "codec": "topk"})"),
                 "part 2: codec, feedback or warm-up differs from that of part 1");
}

TEST_F(RecipeErrors, OptionsOfTheRunThatAPartCannotHaveNameThePart) {
  const std::string coded = by(kGood + R"(, {"epochs": 1, "batch": 40, "codec": "topk:0.1"})");
  expect_refused(coded + "--feedback momentum", "part 1: feedback momentum with codec none");
  expect_refused(coded + "--warmup-steps 3 --warmup-density 0.5", "part 1: warm-up with codec none");
  const std::string rate = R"({"epochs": 1, "batch": 40, "learning_rate": [1, 0]})";
  expect_refused(by(rate + "," + kGood) + "--optimizer lars",
                 "part 2: --optimizer lars needs a --lr, or a learning_rate in every part");
  expect_refused(by(kGood + R"(, {"epochs": 1, "batch": 40, "exchange": "reduce_broadcast"})") +
                     "--optimizer lars --lr 1 --share-norms",
                 "part 2: --share-norms with --exchange reduce_broadcast");
}

TEST_F(RecipeErrors, AFileThatIsNoRecipeIsNamed) {
  std::ofstream(recipe) << "{";
  expect_refused("--recipe " + recipe, recipe + ": invalid JSON");
  const Ended missing = train(1, "--recipe " + (folder / "nowhere.json"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.error.find("cannot read " + (folder / "nowhere.json")), std::string::npos) << missing.error;
}

TEST_F(RecipeErrors, RanksWithDifferentRecipesAreAMismatchThatNamesThePart) {
  const std::string other = folder / "other.json", third = folder / "third.json";
  (void)by(kGood + "," + kGood);
  std::ofstream(other) << R"({"parts": [{"epochs": 1, "batch": 40}, {"epochs": 1, "batch": 39}]})";
  std::ofstream(third) << R"({"about": "another text, the same parts", "parts": [)" << kGood << "," << kGood << "]}";
  const auto with = [&](const std::string& others) {
    return syncopate({"run", "-n", "2", "--", "sh", "-c",
                      "exec " SYNCOPATE_PROGRAM " train --json --model linear --evaluate-every 0 --data " + images +
                          " --recipe $(test $SYNCOPATE_RANK = 0 && echo " + recipe + " || echo " + others + ")"});
  };
  const Ended differ = with(other);
  EXPECT_EQ(differ.code, 1);
  EXPECT_NE(differ.error.find("part 2 of --recipe is epoch 2: batch 40, codec none, exchange allreduce on rank 0 and "
                              "epoch 2: batch 39, codec none, exchange allreduce on rank 1"),
            std::string::npos)
      << differ.error;
  EXPECT_EQ(with(third).code, 0);
  std::ofstream(other) << R"({"parts": [)" << kGood << "]}";
  EXPECT_NE(with(other).error.find("the number of parts of --recipe is 2 on rank 0 and 1 on rank 1"),
            std::string::npos);
  std::ofstream(other) << R"({"options": {"momentum": 0.5}, "parts": [)" << kGood << "," << kGood << "]}";
  EXPECT_NE(with(other).error.find("--momentum is not given on rank 0 and 0.5 on rank 1"), std::string::npos);
}

}  // namespace
}  // namespace syncopate::test
