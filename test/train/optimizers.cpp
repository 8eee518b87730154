// Training with every optimizer: ranks end alike, checkpoints go on bit for bit, and what does not apply is refused.
#include <gtest/gtest.h>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

using Optimizers = TrainingJobs;

TEST_F(Optimizers, CheckpointsGoOnBitForBit) {
  for (const std::string optimizer :
       {"sgd --lr 0.1 --momentum 0", "adamw --lr 0.001", "lars --lr 1", "lamb --lr 0.01"}) {
    const std::string words = "--model linear --batch 4 --warmup 2 --optimizer " + optimizer;
    const std::string whole = digest(2, words + " --steps 5"),
                      part = digest(2, words + " --steps 3 --checkpoint " + file);
    EXPECT_NE(part, whole) << optimizer;
    EXPECT_EQ(digest(2, words + " --steps 5 --resume " + file), whole) << optimizer;
  }
}

// Updates on the training thread, and on rank 0's communication thread; resumed on ranks that had no state.
TEST_F(Optimizers, WhoUpdatesChangesNoBit) {
  for (const std::string optimizer : {"adamw --lr 0.001", "lars --lr 1"}) {
    const std::string words =
        "--model resnet20 --batch 4 --global-batch 12 --fusion-bytes 128KiB --optimizer " + optimizer;
    const std::string everywhere = digest(2, words + " --steps 2");
    EXPECT_EQ(digest(2, words + " --steps 2 --exchange reduce_broadcast --checkpoint " + file), everywhere)
        << optimizer;
    const std::string whole = digest(2, words + " --steps 4"), resumed = words + " --steps 4 --resume " + file;
    EXPECT_EQ(digest(2, resumed), whole) << optimizer;
    EXPECT_EQ(digest(2, resumed + " --exchange reduce_broadcast"), whole) << optimizer;
    EXPECT_NE(digest(3, resumed), "none") << optimizer;
  }
}

TEST_F(Optimizers, LearnWhatThereIsToLearn) {
  for (const std::string optimizer :
       {"adam --lr 0.001", "adamw --lr 0.001", "lars --lr 1 --trust 0.01", "lamb --lr 0.02"}) {
    const auto steps = rows(train(1, "--model linear --batch 40 --steps 30 --optimizer " + optimizer), "step");
    ASSERT_EQ(steps.size(), 30U) << optimizer;
    EXPECT_LT(steps.back().at("loss").get<double>(), 0.2 * steps.front().at("loss").get<double>()) << optimizer;
  }
}

// One batch, whose gradient hardly changes at this rate. The mean of squares begins at zero and is a thousandth of
// the square after one step, five thousandths after five: without the correction for the step, updates shrink.
TEST_F(Optimizers, AdamsFirstStepsAreEquallyLong) {
  const auto steps = rows(train(1,
                                "--model linear --batch 80 --steps 6 --warmup 0 --optimizer adam --lr 1e-5 "
                                "--beta1 0 --beta2 0.999"),
                          "step");
  ASSERT_EQ(steps.size(), 6U);
  const auto fall = [&](std::size_t i) {
    return steps[i - 1].at("loss").get<double>() - steps[i].at("loss").get<double>();
  };
  EXPECT_GT(fall(1), 0);
  EXPECT_NEAR(fall(5) / fall(1), 1, 0.1);
}

TEST_F(Optimizers, ACheckpointOfAnotherOptimizerIsMisuse) {
  ASSERT_NE(digest(1, "--model linear --steps 2 --optimizer adam --lr 0.001 --checkpoint " + file), "none");
  expect_misuse(train(1, "--model linear --steps 4 --optimizer adamw --lr 0.001 --resume " + file),
                {"was trained with --optimizer adam, and this run has --optimizer adamw"});
}

TEST_F(Optimizers, OptionsThatDoNotApplyAreRefusedByName) {
  const std::pair<std::string, std::string> wrong[] = {
      {"adam --lr 1 --momentum 0.5", "optimizer adam takes no momentum"},
      {"adamw --lr 1 --nesterov", "--nesterov with --optimizer adamw"},
      {"sgd --beta1 0.5", "optimizer momentum takes no beta1"},
      {"sgd --momentum 0 --trust 0.5", "optimizer sgd takes no trust"},
      {"lars --lr 1 --epsilon 1", "optimizer lars takes no epsilon"},
      {"lamb --lr 1 --feedback momentum --codec topk", "--feedback momentum with --optimizer lamb"},
      {"adam --lr 1 --beta2 1", "beta2 of optimizer adam is 1"},
      {"adam", "--optimizer adam needs a --lr"},
      {"nesterov", "allowed: --optimizer sgd with"},
      {"rmsprop --lr 1", "rmsprop"},
  };
  for (const auto& [words, says] : wrong)
    expect_misuse(train(1, "--model linear --steps 1 --optimizer " + words), {says});
}

}  // namespace
}  // namespace syncopate::test
