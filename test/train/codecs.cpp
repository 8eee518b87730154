// Training with codecs: checkpoints hold what was left out of gradients, and what would lose is not used.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

class Codecs : public TrainingJobs {
 protected:
  Codecs() : TrainingJobs("--model linear --batch 4") {}
  /// A codec, and a cluster file by which it takes longer than sending gradients as they are.
  [[nodiscard]] std::string losing_codec() {
    const std::string slow = folder / "slow.json";
    std::ofstream(slow) << R"({"ranks": 2, "links": {"inter": {"alpha_s": 1e-6, "beta_s_per_byte": 1e-11,
      "gamma_s_per_byte": 0}}, "codecs": {"topk:0.5": {"encode_s_per_byte": 1e-8, "decode_s_per_byte": 1e-9}}})";
    return "--codec topk:0.5 --cluster " + slow;
  }
};

TEST_F(Codecs, ACheckpointHoldsWhatWasLeftOut) {
  for (const std::string feedback : {"residual", "momentum"}) {
    const std::string words = " --codec topk:0.02 --feedback " + feedback, saved = folder / feedback;
    const std::string whole = digest(2, "--steps 5" + words);
    (void)digest(2, "--steps 3 --checkpoint " + saved + words);
    EXPECT_EQ(digest(2, "--steps 5 --resume " + saved + words), whole);
    std::filesystem::remove(saved + ".rank1");
    const Ended without = train(2, "--steps 5 --resume " + saved + words);
    EXPECT_EQ(without.code, 0) << without.error;
    expect_words(without.error,
                 {"no codec state: " + saved + ".rank1", "1 of 2 ranks have no codec state to resume from"});
    EXPECT_NE(digest(2, "--steps 5 --resume " + saved + words), whole) << "nothing was lost with the state";
  }
}

TEST_F(Codecs, WhatACodecDrawsAndHowFarItsWarmUpIsGoesOnWithACheckpoint) {
  for (const std::string codec : {"terngrad", "qsgd:4", "random_k:0.1 --feedback none",
                                  "topk:0.05 --feedback none --warmup-density 0.5 --warmup-steps 4"}) {
    const std::string words = " --codec " + codec, whole = digest(2, "--steps 5" + words);
    (void)digest(2, "--steps 3 --checkpoint " + file + words);
    EXPECT_EQ(digest(2, "--steps 5 --resume " + file + words), whole) << codec;
  }
}

TEST_F(Codecs, OnlyRankZeroNeedsTheCheckpointsName) {
  const std::string words = "--codec topk:0.02 --steps ";
  (void)digest(2, words + "2 --checkpoint " + file);
  const Ended ended =
      syncopate({"run", "-n", "2", "--", "sh", "-c",
                 "exec " SYNCOPATE_PROGRAM " train --json --model linear --batch 4 --evaluate-every 0 "
                 "--data " +
                     images + " " + words + "4 $(test $SYNCOPATE_RANK = 0 && echo --resume " + file + ")"});
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_NE(ended.error.find("1 of 2 ranks have no codec state to resume from"), std::string::npos) << ended.error;
}

TEST_F(Codecs, StateOfOtherRanksStepsOrCodecsIsNotTaken) {
  (void)digest(2, "--steps 2 --codec topk:0.02 --checkpoint " + file);
  const std::string says_ranks = train(3, "--steps 3 --codec topk:0.02 --resume " + file).error;
  EXPECT_NE(says_ranks.find("it was saved with ranks 2, this run has 3"), std::string::npos) << says_ranks;
  const std::string denser = train(2, "--steps 3 --codec topk:0.05 --resume " + file).error;
  EXPECT_EQ(denser.find("it was saved with"), std::string::npos) << "the density may change: " << denser;
  const std::string says_codec = train(2, "--steps 3 --codec dgc:0.02 --resume " + file).error;
  expect_words(says_codec, {"it was saved with codec \"topk", "this run has \"dgc"});
  const std::string damaged = file_text(file + ".rank0");
  std::ofstream(file + ".rank0", std::ios::binary) << damaged.substr(0, damaged.size() - 9) + "012345678";
  const std::string says_damage = train(2, "--steps 3 --codec topk:0.02 --resume " + file).error;
  EXPECT_NE(says_damage.find("is damaged"), std::string::npos) << says_damage;
}

TEST_F(Codecs, OneThatIsPredictedToLoseIsNotUsedUnlessForced) {
  const std::string words = losing_codec() + " --steps 2";
  const Ended refused = train(2, words);
  EXPECT_NE(refused.error.find("codec topk:0.5 is not used"), std::string::npos) << refused.error;
  EXPECT_EQ(digest(2, words), digest(2, "--steps 2"));
  EXPECT_EQ(train(2, words + " --force").error.find("is not used"), std::string::npos);
  EXPECT_EQ(digest(2, words + " --force"), digest(2, "--steps 2 --codec topk:0.5"));
}

TEST_F(Codecs, EachBucketTakesTheCheapestOfThoseThatAreAllowed) {
  const std::string fast = folder / "fast.json", words = " --policy wfbp --steps 3";
  std::ofstream(fast) << R"({"ranks": 2, "links": {"inter": {"alpha_s": 1e-6, "beta_s_per_byte": 1e-7,
      "gamma_s_per_byte": 0}}, "codecs": {"topk:0.02": {"encode_s_per_byte": 1e-9, "decode_s_per_byte": 1e-9}}})";
  const std::string out = folder / "out";
  const Ended chosen = train(2, "--codec auto:topk:0.02+none --cluster " + fast + words + " --out " + out);
  ASSERT_EQ(chosen.code, 0) << chosen.error;
  const std::string run = file_text(out + "/run.json");
  EXPECT_NE(run.find("\"predicted_s\""), std::string::npos) << run;
  EXPECT_EQ(digest(2, "--codec auto:topk:0.02+none --cluster " + fast + words), digest(2, "--codec topk:0.02" + words));
  const std::string losing = losing_codec().substr(std::string("--codec topk:0.5").size());
  const Ended lost = train(2, "--codec auto:topk:0.5+none" + losing + words);
  EXPECT_NE(lost.error.find("not chosen for any bucket: codec topk:0.5"), std::string::npos) << lost.error;
  EXPECT_EQ(digest(2, "--codec auto:topk:0.5+none" + losing + words), digest(2, words));
  expect_misuse(train(2, "--codec auto:topk:0.03+none --cluster " + fast + words),
                {"has no coding times of codec topk:0.03"});
  EXPECT_EQ(train(2, "--codec auto:topk:0.02+none" + words).code, 2) << "without a cluster file";
}

// Gradients then come without their momentum, which the optimizer adds as it does without a codec.
TEST_F(Codecs, OneThatIsNotUsedLeavesTheOptimizerItsMomentum) {
  const std::string words = losing_codec() + " --steps 3 --feedback momentum";
  EXPECT_NE(train(2, words).error.find("is not used"), std::string::npos);
  EXPECT_EQ(digest(2, words), digest(2, "--steps 3"));
  EXPECT_NE(digest(2, "--steps 3 --momentum 0.5"), digest(2, "--steps 3")) << "nothing has momentum";
}

class Clipping : public TrainingJobs {
 protected:
  Clipping() : TrainingJobs("--batch 4") {}
};

// The transformer's clip is 1; of 4 ranks each clips to 1 * sqrt(4).
TEST_F(Clipping, MomentumCorrectionClipsGradientsBeforeTheyAreAccumulated) {
  const std::string text = folder / "text";
  std::ofstream(text) << std::string(4000, 'a') << std::string(4000, 'b');
  const std::string words = "--model transformer --layers 1 --width 32 --heads 2 --context 16 --data " + text +
                            " --steps 3 --dense-below 0 --codec topk:0.1 --feedback momentum";
  const std::string usual = digest(4, words);
  EXPECT_EQ(usual, digest(4, words + " --clip 0 --local-clip 2"));
  EXPECT_NE(usual, digest(4, words + " --local-clip 0")) << "nothing was clipped";
  EXPECT_NE(train(1, words + " --clip 1").error.find("averages are velocities"), std::string::npos);
}

TEST_F(Codecs, AWrongCodecOrFeedbackIsMisuse) {
  for (const char* words : {"--codec topk:7", "--codec topq:0.1", "--feedback momentum", "--codec topk --feedback so",
                            "--codec topk --feedback momentum --momentum 0", "--codec topk --warmup-density 0.5"})
    expect_misuse(train(1, words), {"allowed"});
}

}  // namespace
}  // namespace syncopate::test
