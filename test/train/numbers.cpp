// Options of training: numbers that are refused, options without effect, and what a run logs when it begins.
#include "process/numbers.hpp"

#include "jobs.hpp"

namespace syncopate::test {
namespace {

class TrainingOptions : public TrainingJobs {};

TEST_F(TrainingOptions, RefuseNumbersThatAreNegativeOrTooLong) { EXPECT_GE(expect_refusals({"train"}), 38U); }

TEST_F(TrainingOptions, WithoutEffectAreRefused) {
  const std::pair<std::string, std::string> wrong[] = {
      {"--exchange parameter_server --policy single", "--policy single has no effect with --exchange parameter_server"},
      {"--exchange parameter_server --fusion-bytes 1MiB", "--fusion-bytes has no effect with --exchange"},
      {"--policy single --fusion-bytes 1MiB", "--fusion-bytes has no effect with --policy single"},
      {"--policy wfbp --check-every 4", "--check-every has no effect with --policy wfbp"},
      {"--broadcast-every 2", "--broadcast-every has no effect with --exchange allreduce"},
      {"--origin-rate 0", "--origin-rate: '0' is not allowed; allowed: 1 B or more"},
      {"--slow 9:2", "--slow names rank 9; allowed: 0 to 0"},
      {"--decay 0.5", "--decay has no effect without --milestones"},
      {"--force", "--force has no effect without --cluster"},
      {"--steps 2 --steps 3", "--steps is given twice"},
      {"--stepz 3", "option of `syncopate-train` '--stepz' is unknown; did you mean '--steps'?"},
  };
  for (const auto& [words, says] : wrong) expect_misuse(train(1, "--model linear " + words), {says});
}

TEST_F(TrainingOptions, OfTheLargestNumberOfStepsTrain) {
  const Ended ended =
      syncopate({"train", "--model", "linear", "--data", images, "--evaluate-every", "0", "--batch", "80", "--warmup",
                 "0", "--lr", "1e35", "--stop-on-nan", "--steps", "18446744073709551615"});
  EXPECT_EQ(ended.code, 1) << ended.error;
  EXPECT_NE(ended.error.find("is not finite at step"), std::string::npos) << ended.error;
}

TEST_F(TrainingOptions, ThatDoNotFitTheDataAreWarnedAbout) {
  const Ended batch = train(1, "--model linear --steps 1 --batch 1000");
  EXPECT_EQ(batch.code, 0) << batch.error;
  EXPECT_NE(batch.error.find("a step of 1000 samples is more than the 80 of --data"), std::string::npos) << batch.error;
  const Ended classes = train(1, "--model resnet50 --steps 1 --batch 1");
  EXPECT_EQ(classes.code, 0) << classes.error;
  EXPECT_NE(classes.error.find("model resnet50 has 1000 classes, --data has 10"), std::string::npos) << classes.error;
  EXPECT_EQ(train(1, "--model linear --steps 1").error, "");
}

TEST_F(TrainingOptions, ResumeIsLogged) {
  ASSERT_EQ(train(1, "--model linear --steps 2 --checkpoint " + file).code, 0);
  const Ended ended = syncopate({"train", "--model", "linear", "--data", images, "--steps", "3", "--resume", file});
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_NE(ended.output.find("resumes from step 2 of " + file + "\n"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace syncopate::test
