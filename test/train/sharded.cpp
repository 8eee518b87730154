// Training with shards: the bits of ranks that update everything, checkpoints that go on anywhere, and shared norms.
#include <gtest/gtest.h>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

using Sharded = TrainingJobs;

const std::string kWords = "--model resnet20 --batch 4 --global-batch 12 --fusion-bytes 128KiB --optimizer ";

// Two ranks' averages have the same bits in whatever order they are summed.
TEST_F(Sharded, TrainsWhatRanksTrainThatUpdateAll) {
  for (const std::string optimizer :
       {"sgd --lr 0.05 --momentum 0.9", "adamw --lr 0.001", "lars --lr 1", "lamb --lr 0.01"}) {
    const std::string whole = digest(2, kWords + optimizer + " --steps 3");
    EXPECT_EQ(digest(2, kWords + optimizer + " --steps 3 --exchange sharded"), whole) << optimizer;
    EXPECT_EQ(digest(2, kWords + optimizer + " --steps 3 --exchange sharded --serial"), whole) << optimizer;
  }
}

TEST_F(Sharded, SharedNormsChangeNoBit) {
  for (const std::string optimizer : {"lars --lr 1", "lamb --lr 0.01"})
    EXPECT_EQ(digest(3, kWords + optimizer + " --steps 3 --share-norms"), digest(3, kWords + optimizer + " --steps 3"))
        << optimizer;
}

TEST_F(Sharded, CheckpointsGoOnUnderAnotherExchangeAndNumberOfRanks) {
  const std::string words = kWords + "lamb --lr 0.01", resumed = words + " --steps 4 --resume " + file;
  const std::string whole = digest(2, words + " --steps 4");
  (void)digest(2, words + " --steps 2 --exchange sharded --checkpoint " + file);
  EXPECT_EQ(digest(2, resumed), whole) << "by all-reduce";
  EXPECT_EQ(digest(2, resumed + " --exchange reduce_broadcast"), whole) << "by a root";
  EXPECT_EQ(digest(2, resumed + " --exchange sharded"), whole) << "by shards";
  EXPECT_EQ(digest(3, resumed + " --exchange sharded"), digest(3, resumed + " --exchange sharded --serial"));
  EXPECT_NE(digest(3, resumed + " --exchange sharded"), "none") << "by shards of other ranks";
  (void)digest(2, words + " --steps 2 --checkpoint " + file);
  EXPECT_EQ(digest(2, resumed + " --exchange sharded"), whole) << "of a state that was whole";
}

TEST_F(Sharded, ACheckpointOfAnotherOptimizerIsMisuseOnRankZero) {
  (void)digest(1, "--model linear --steps 2 --optimizer adam --lr 0.001 --checkpoint " + file);
  const Ended ended =
      train(2, "--model linear --steps 4 --exchange sharded --optimizer adamw --lr 0.001 --resume " + file);
  EXPECT_NE(ended.code, 0);
  EXPECT_NE(ended.error.find("was trained with --optimizer adam, and this run has --optimizer adamw"),
            std::string::npos)
      << ended.error;
}

TEST_F(Sharded, SharedNormsThatNobodyCanShareAreRefusedByName) {
  const std::pair<std::string, std::string> wrong[] = {
      {"adam --lr 1 --share-norms", "--share-norms with --optimizer adam"},
      {"lars --lr 1 --share-norms --exchange none", "--share-norms with --exchange none"},
      {"lars --lr 1 --share-norms --exchange reduce_broadcast", "--share-norms with --exchange reduce_broadcast"},
      {"lars --lr 1 --exchange sharded --codec fp16", "allowed: codec 'none' only"},
  };
  for (const auto& [words, says] : wrong)
    expect_misuse(train(1, "--model linear --steps 1 --optimizer " + words), {says});
}

}  // namespace
}  // namespace syncopate::test
