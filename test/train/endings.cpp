// How a training ends: signals, checkpoints that cannot be written, values that are not finite, ranks that differ.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "process/run_program.hpp"
#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

using Json = nlohmann::json;

class TrainingEnd : public TrainingJobs {
 protected:
  /// Trains a model whose step takes a millisecond.
  [[nodiscard]] std::string train(const std::string& more) const {
    return SYNCOPATE_PROGRAM " train --json --model linear --batch 4 --data " + images + " " + more;
  }
  [[nodiscard]] std::vector<std::string> job(int ranks, const std::string& more) const {
    return run_script(ranks, "echo process $SYNCOPATE_RANK $$; exec " + train(more));
  }
  [[nodiscard]] Ended alone(const std::string& more) const {
    return syncopate({"run", "-n", "1", "--", "sh", "-c", "exec " + train(more)});
  }
  [[nodiscard]] std::vector<std::string> drafts() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder / ""))
      if (entry.path().extension() == ".writing") names.push_back(entry.path());
    return names;
  }
};

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(TrainingEnd, ASignalToOneRankLeavesACheckpointAndTheSummaryOfAllAtTheSameStep) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    Running run(job(3, "--epochs 1000000 --evaluate-every 0 --checkpoint " + file));
    ASSERT_TRUE(run.says("\"event\":\"step\"", 3));
    const std::string& output = run.output();
    const pid_t rank = std::stoi(output.substr(output.find("process 1 ") + 10));
    kill(rank, number);
    const Ended ended = run.end();
    EXPECT_EQ(ended.code, 128 + number) << ended.error;
    const auto ends = rows(ended, "end");
    ASSERT_EQ(ends.size(), 3U) << ended.error;
    for (const Json& end : ends) {
      EXPECT_EQ(end.at("steps"), ends[0].at("steps"));
      EXPECT_EQ(end.at("digest"), ends[0].at("digest"));
      EXPECT_EQ(end.at("signal"), number);
    }
    const std::string next = std::to_string(ends[0].at("steps").get<int>() + 1);
    const auto resumed = rows(alone("--steps " + next + " --resume " + file), "step");
    ASSERT_EQ(resumed.size(), 1U);
    EXPECT_EQ(std::to_string(resumed[0].at("step").get<int>()), next);
  }
}

TEST_F(TrainingEnd, AClosedTerminalLeavesACheckpoint) {
  for (const bool launched : {true, false}) {
    const std::string words = train("--epochs 1000000 --evaluate-every 0 --checkpoint " + file);
    std::vector<std::string> arguments = launched ? run_script(2, "exec " + words) : std::vector<std::string>{};
    std::istringstream stream(words.substr(words.find(" train ") + 1));
    for (std::string word; !launched && stream >> word;) arguments.push_back(word);
    Running run(arguments, {.terminal = true});
    ASSERT_TRUE(run.says("\"event\":\"step\"", 3));
    run.close_terminal();
    EXPECT_EQ(run.end().code, 128 + SIGHUP) << launched;
    EXPECT_TRUE(std::filesystem::remove(file)) << "no checkpoint, launched: " << launched;
  }
}

TEST_F(TrainingEnd, StandardOutputThatCannotBeWrittenIsAFailureAtTheEnd) {
  const std::string words = " --report-every 1 > /dev/full";
  const Ended ended = alone("--steps 2 --checkpoint " + file + words);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.error.find("cannot write to standard output: No space left on device"), std::string::npos)
      << ended.error;
  EXPECT_TRUE(std::filesystem::exists(file)) << "the training itself went on";
  EXPECT_EQ(syncopate({"train", "--help"}, {.output_to = "/dev/full"}).code, 1);
  EXPECT_EQ(syncopate({"train", "--lr", "0"}, {.error_to = "/dev/full"}).code, 2);
}

TEST_F(TrainingEnd, AFolderIsNoCheckpointToResumeFrom) {
  const Ended ended = alone("--steps 2 --resume " + folder / "");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.error.find("it is a folder"), std::string::npos) << ended.error;
}

TEST_F(TrainingEnd, ACheckpointThatCannotBeAFileIsRefusedBeforeTheFirstStep) {
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& wrong : {folder / "", folder / "missing/file", pipe}) {
    const Ended ended = alone("--steps 2 --checkpoint " + wrong);
    EXPECT_NE(ended.code, 0);
    EXPECT_TRUE(rows(ended, "step").empty()) << wrong;
    EXPECT_NE(ended.error.find(wrong), std::string::npos) << ended.error;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

// The linear model's checkpoint has 240 KiB.
TEST_F(TrainingEnd, OfALastCheckpointThatDoesNotFitIsAFailureAfterTheSummary) {
  std::ofstream(file) << "the old one";
  const Ended ended = syncopate(run_script(2, "ulimit -f 100; exec " + train("--steps 2 --checkpoint " + file)));
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(rows(ended, "end").size(), 2U);
  EXPECT_NE(ended.error.find("File too large"), std::string::npos) << ended.error;
  EXPECT_EQ(file_text(file), "the old one");
  EXPECT_EQ(drafts(), std::vector<std::string>{});
}

// A row has about 400 bytes; a file may have 16 KiB.
TEST_F(TrainingEnd, RowsThatDoNotFitAreAnErrorAtOnceAndFailTheRunAtItsEnd) {
  const std::string words = "--steps 120 --evaluate-every 0 --out " + folder / "run";
  const Ended ended = syncopate(run_script(2, "ulimit -f 16; exec " + train(words)));
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(rows(ended, "step").size(), 120U) << "training goes on";
  EXPECT_EQ(rows(ended, "end").size(), 2U);
  EXPECT_EQ(times(ended.error, "rank-0.jsonl: File too large; later rows of rank 0 are lost"), 1) << ended.error;
  EXPECT_EQ(times(ended.error, "rank-1.jsonl: File too large; later rows of rank 1 are lost"), 1) << ended.error;
  EXPECT_TRUE(Json::accept(file_text(folder / "run/run.json")));
}

TEST_F(TrainingEnd, RowsHaveTheirTimeAndStepsTheirEpochAndRate) {
  const Ended ended = alone("--steps 40 --lr 0.5 --warmup 4 --milestones 30 --out " + folder / "run");
  ASSERT_EQ(ended.code, 0) << ended.error;
  double before = 1e9;
  for (const char* event : {"begin", "step", "epoch", "end"})
    for (const Json& row : rows(ended, event)) EXPECT_GT(row.at("time").get<double>(), 1e9) << row;
  const auto steps = rows(ended, "step");
  ASSERT_EQ(steps.size(), 40U);
  for (const Json& step : steps) {
    EXPECT_GE(step.at("time").get<double>(), before);
    before = step.at("time").get<double>();
    EXPECT_DOUBLE_EQ(step.at("epoch").get<double>(), step.at("step").get<int>() / 20.0) << "80 images in batches of 4";
  }
  EXPECT_DOUBLE_EQ(steps[0].at("learning_rate").get<double>(), 0.125);
  EXPECT_DOUBLE_EQ(steps[10].at("learning_rate").get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(steps[30].at("learning_rate").get<double>(), 0.05);
  const Json run = Json::parse(file_text(folder / "run/run.json"));
  EXPECT_GE(run.at("start_time").get<double>(), 1e9);
  EXPECT_LE(run.at("start_time").get<double>(), steps[0].at("time").get<double>());
  EXPECT_GT(run.at("duration_s").get<double>(), 0);
}

TEST_F(TrainingEnd, AnIntermediateCheckpointThatDoesNotFitIsTriedAgainAtTheNext) {
  const std::string words = "--epochs 1000000 --evaluate-every 0 --checkpoint-every 1 --checkpoint " + file;
  Running run(run_script(1, "ulimit -S -f 1; echo process $$; exec " + train(words)));
  int steps = 2;
  ASSERT_TRUE(run.says("\"event\":\"step\"", steps)) << "the first checkpoint has failed before the second step";
  EXPECT_FALSE(std::filesystem::exists(file));
  const rlimit enough{RLIM_INFINITY, RLIM_INFINITY};
  const pid_t rank = std::stoi(run.output().substr(run.output().find("process ") + 8));
  ASSERT_EQ(prlimit(rank, RLIMIT_FSIZE, &enough, nullptr), 0);
  while (!std::filesystem::exists(file)) ASSERT_TRUE(run.says("\"event\":\"step\"", ++steps));
  run.send(SIGTERM);
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.error;
  EXPECT_GE(times(ended.error, "File too large; training goes on"), 1) << ended.error;
  EXPECT_EQ(drafts(), std::vector<std::string>{});
}

TEST_F(TrainingEnd, AValueThatIsNotFiniteIsSaidOnceWithItsStepAndRank) {
  const Ended ended = syncopate(job(3, "--steps 12 --lr 1e30 --evaluate-every 0"));
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(times(ended.error, "not finite"), 1) << ended.error;
  for (const Json& row : rows(ended, "step"))
    if (row.at("loss").is_null()) {
      const std::string where = "not finite at step " + std::to_string(row.at("step").get<int>()) + " on rank ";
      EXPECT_NE(ended.error.find(where), std::string::npos) << ended.error;
      return;
    }
  FAIL() << "the loss stayed finite";
}

TEST_F(TrainingEnd, StopOnNanEndsTheRunThereAndKeepsTheLastCheckpoint) {
  const std::string words = "--lr 1e30 --steps 12 --checkpoint-every 1 --stop-on-nan --checkpoint " + file;
  const Ended ended = syncopate(job(2, words));
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(rows(ended, "end").empty());
  EXPECT_NE(ended.output.find("\"kind\":\"NotFinite\""), std::string::npos) << ended.output;
  // Another rank may have met it while rank 0 was still ending the step before, which then has no checkpoint.
  const std::size_t trained = rows(ended, "step").size();
  const bool is_next = ended.error.find(fmt::format("is not finite at step {} ", trained + 1)) != std::string::npos;
  const std::size_t step = trained + (is_next ? 1 : 2);
  EXPECT_NE(ended.error.find(fmt::format("is not finite at step {} ", step)), std::string::npos) << ended.error;
  const Ended again =
      alone(fmt::format("--lr 1e30 --evaluate-every 0 --stop-on-nan --steps {} --resume {}", step, file));
  EXPECT_EQ(again.code, 1) << "its weights gave the value that was not finite";
  EXPECT_EQ(rows(again, "step").size(), step - 1 - trained);
}

TEST_F(TrainingEnd, RanksWithOtherOptionsNeverBegin) {
  const Ended options = syncopate(run_script(3, "exec " + train("--steps 2 --lr 0.$((SYNCOPATE_RANK/2+1))")));
  EXPECT_EQ(options.code, 1);
  EXPECT_NE(options.error.find("--lr is 0.1 on rank 0 and 0.2 on rank 2"), std::string::npos) << options.error;
  EXPECT_EQ(times(options.output, "\"kind\":\"Mismatch\""), 3) << options.output;
}

TEST_F(TrainingEnd, RanksWithDataOfOtherLengthsNeverBegin) {
  ASSERT_EQ(syncopate({"data", "draw", "--out", folder / "images1", "--train", "90", "--test", "10"}).code, 0);
  std::filesystem::create_symlink(images, folder / "images0");
  const std::string words = " train --model linear --steps 2 --data " + folder / "images$SYNCOPATE_RANK";
  const Ended ended = syncopate(run_script(2, "exec " SYNCOPATE_PROGRAM + words));
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.error.find("training samples in --data is 80 on rank 0 and 90 on rank 1"), std::string::npos)
      << ended.error;
}

TEST_F(TrainingEnd, OfRanksThatTrainAloneMayBeWithDifferentParameters) {
  const std::string words = "--steps 2 --evaluate-every 0 --exchange none";
  const Ended ended = syncopate(job(2, words));
  EXPECT_EQ(ended.code, 0) << ended.error;
  const auto ends = rows(ended, "end");
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_NE(ends[0].at("digest"), ends[1].at("digest"));
}

TEST_F(TrainingEnd, WhatCannotBeMeantIsRefused) {
  const std::vector<std::string> refused{
      "--lr nan",       "--lr inf",          "--lr 0",
      "--momentum nan", "--weight-decay -1", "--clip nan",
      "--epochs 0",     "--trace-step 2",    "--trace-step 50 --out " + folder / "run"};
  for (const std::string& words : refused) {
    const Ended ended = alone("--steps 3 " + words);
    EXPECT_EQ(ended.code, 2) << words << ended.error;
    EXPECT_LT(ended.error.size(), 400U) << ended.error;
    EXPECT_TRUE(rows(ended, "step").empty()) << words;
  }
}

TEST_F(TrainingEnd, StepsThatAreDoneAlreadyAreSaid) {
  ASSERT_EQ(alone("--steps 4 --checkpoint " + file).code, 0);
  const Ended ended = alone("--steps 2 --resume " + file);
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.error.find("nothing left to train: already at step 4"), std::string::npos) << ended.error;
}

TEST_F(TrainingEnd, TheLastEvaluationHasARowOfItsOwn) {
  const Ended ended = alone("--steps 3");
  const auto evaluations = rows(ended, "epoch"), ends = rows(ended, "end");
  ASSERT_EQ(evaluations.size(), 1U) << ended.output;
  EXPECT_EQ(evaluations[0].at("step"), 3);
  EXPECT_EQ(evaluations[0].at("loss"), ends.at(0).at("loss"));
  EXPECT_EQ(evaluations[0].at("accuracy"), ends.at(0).at("accuracy"));
}

}  // namespace
}  // namespace syncopate::test
