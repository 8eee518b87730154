// Checkpoints where servers hold the weights: a resumed run has the bits of the uninterrupted one.
#include <filesystem>
#include <fstream>

#include "jobs.hpp"

namespace syncopate::test {
namespace {

class Served : public TrainingJobs {
 protected:
  Served() : TrainingJobs("--model linear --batch 4 --seed 5") {}

  [[nodiscard]] Ended with_servers(int ranks, int servers, const std::string& more) const {
    return train(ranks, "--exchange parameter_server " + more, {"--servers", std::to_string(servers)});
  }
  [[nodiscard]] std::string digest_with(int ranks, int servers, const std::string& more) const {
    return digest_of(with_servers(ranks, servers, more), ranks);
  }
};

TEST_F(Served, InLockstepGoesOnWithTheBitsOfAnUninterruptedRun) {
  const std::string adamw = "--optimizer adamw --lr 0.01 ";
  const std::string expected = digest_with(2, 2, adamw + "--steps 7");
  EXPECT_EQ(digest_with(2, 2, adamw + "--steps 5 --checkpoint-every 3 --checkpoint " + file),
            digest(2, adamw + "--steps 5"));
  EXPECT_EQ(digest_with(2, 2, adamw + "--steps 7 --resume " + file), expected);
  EXPECT_EQ(digest_with(2, 3, adamw + "--placement lpt --steps 7 --resume " + file), expected) << "other servers";
  EXPECT_EQ(digest(2, adamw + "--steps 7 --resume " + file), expected) << "without servers";
}

TEST_F(Served, InLockstepEveryFlowEndsInTheSameBits) {
  const std::string expected = digest(2, "--steps 5");
  for (const char* flow : {"traditional", "wait_free", "front_first"}) {
    const Ended ended = with_servers(2, 2, "--steps 5 --flow " + std::string(flow) + " --out " + folder / flow);
    EXPECT_EQ(digest_of(ended, 2), expected) << flow;
    EXPECT_EQ(nlohmann::json::parse(file_text(folder / flow + "/run.json")).at("policy"), flow);
  }
  expect_misuse(with_servers(2, 1, "--steps 1 --flow back_first"), {"--flow", "traditional, wait_free, front_first"});
  expect_misuse(train(2, "--steps 1 --flow wait_free", {}), {"--flow with --exchange allreduce", "parameter_server"});
}

TEST_F(Served, TheFileOfAJobIsThatOfAllItsPrograms) {
  const Ended ended = syncopate({"run", "--config", EXAMPLE_JOB, "--", SYNCOPATE_PROGRAM, "train", "--config",
                                 EXAMPLE_JOB, "--json", "--data", images, "--steps", "5", "--out", folder / "run"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(rows(ended, "end").size(), 2U);
  const auto run = nlohmann::json::parse(file_text(folder / "run/run.json"));
  EXPECT_EQ(run.at("policy"), "wait_free");
  EXPECT_EQ(run.at("consistency"), "ssp:3");
  EXPECT_EQ(run.at("codec"), "topk:0.05");
  EXPECT_EQ(run.at("steps"), 5) << "the command line takes precedence";
  std::ofstream(file) << "[train]\nmodel = 'linear'\nconsistncy = 'bsp'\n";
  expect_misuse(syncopate({"train", "--config", file, "--data", images}),
                {file + ":3: key of [train] 'consistncy' is unknown; did you mean 'consistency'?"});
  std::ofstream(file) << "[train]\nslow = '1'\n";
  expect_misuse(syncopate({"train", "--config", file, "--data", images}),
                {file + ":2: --slow 1; allowed: RANK:FACTOR"});
}

TEST_F(Served, TheFileOfAJobReachesTheServersThatRunStarts) {
  const std::string snapshots = folder / "snapshots";
  std::ofstream(file) << "[run]\nservers = 1\n[server]\nsnapshot-every = 2\nsnapshots = \"" << snapshots << "\"\n";
  const Ended ended = train(2, "--exchange parameter_server --steps 4", {"--config", file});
  ASSERT_EQ(ended.code, 0) << ended.error;
  EXPECT_FALSE(std::filesystem::is_empty(snapshots));
}

TEST_F(Served, TheRecordNamesItsTransportPolicyAndServers) {
  const Ended ended = with_servers(2, 2, "--steps 3 --out " + folder / "run");
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto run = nlohmann::json::parse(file_text(folder / "run/run.json"));
  EXPECT_EQ(run.at("transport"), "streams");
  EXPECT_EQ(run.at("policy"), "front_first");
  EXPECT_EQ(run.at("consistency"), "bsp");
  for (const auto& end : rows(ended, "end")) {
    EXPECT_EQ(end.at("reconnections"), 0);
    ASSERT_EQ(end.contains("servers"), end.at("rank") == 0);
    if (end.at("rank") != 0) continue;
    ASSERT_EQ(end.at("servers").size(), 2U);
    std::uint64_t kept = 0;
    for (const auto& server : end.at("servers")) {
      EXPECT_FALSE(server.at("address").get<std::string>().empty());
      EXPECT_GT(server.at("received_bytes"), 0);
      EXPECT_GT(server.at("sent_bytes"), 0);
      kept += server.at("kept_bytes").get<std::uint64_t>();
    }
    EXPECT_EQ(kept, run.at("gradient_bytes"));
  }
}

TEST_F(Served, WhatAnEvaluationWaitsForIsOfNoStep) {
  const Ended ended = with_servers(3, 2, "--steps 12 --evaluate-every 1");
  ASSERT_EQ(ended.code, 0) << ended.error;
  for (const auto& step : rows(ended, "step")) EXPECT_LE(step.at("wait_share"), 1.0) << step;
}

TEST_F(Served, ServersThatTheExchangeDoesNotUseAreNamedInAWarning) {
  const Ended idle = train(2, "--steps 1", {"--servers", "1"});
  EXPECT_EQ(idle.code, 0) << idle.error;
  EXPECT_NE(idle.error.find("are not used: give --exchange parameter_server"), std::string::npos) << idle.error;
  EXPECT_EQ(with_servers(2, 1, "--steps 1").error.find("are not used"), std::string::npos);
  EXPECT_EQ(syncopate({"server", "--help"}, {.output_to = "/dev/full"}).code, 1);
}

TEST_F(Served, GoesOnFromACheckpointOfRanksAndOnAnotherNumberOfWorkers) {
  const std::string expected = digest(2, "--steps 7");
  static_cast<void>(digest(2, "--steps 4 --checkpoint " + file));
  EXPECT_EQ(digest_with(2, 2, "--steps 7 --resume " + file), expected);
  static_cast<void>(digest_with(3, 2, "--steps 7 --resume " + file));
}

TEST_F(Served, KeepsWhatItsCodecLeftOut) {
  const std::string topk = "--codec topk:0.05 --dense-below 1 ",
                    corrected = topk + "--feedback momentum --warmup-density 0.25 --warmup-steps 6 --local-clip 1 ";
  for (const std::string& codec : {corrected, topk}) {
    const std::string expected = digest_with(2, 2, codec + "--steps 7");
    static_cast<void>(digest_with(2, 2, codec + "--steps 4 --checkpoint " + file));
    const Ended ended = with_servers(2, 2, codec + "--steps 7 --resume " + file);
    EXPECT_EQ(digest_of(ended, 2), expected) << codec;
    EXPECT_EQ(ended.error.find("no codec state"), std::string::npos) << ended.error;
  }
  const std::string masks = "--codec importance:1 --dense-below 1 ";
  static_cast<void>(digest_with(2, 2, masks + "--steps 4 --checkpoint " + file));
  const Ended more = with_servers(2, 3, masks + "--steps 7 --resume " + file);
  EXPECT_EQ(more.code, 0) << more.error;
  EXPECT_EQ(more.error.find("no codec state"), std::string::npos) << "other servers: " << more.error;
  static_cast<void>(digest_with(2, 2, topk + "--steps 4 --checkpoint " + file));
  const Ended other = with_servers(3, 2, topk + "--steps 7 --resume " + file);
  EXPECT_NE(other.error.find("no codec state"), std::string::npos) << other.error;
}

TEST_F(Served, UnderStalenessAndCodedAnswersSavesWhatTheServersReallyKeep) {
  const std::string stale = "--consistency ssp:3 --answers topk:0.05 --dense-below 1 --optimizer adam --lr 0.01 ";
  const std::string at_the_end = digest_with(2, 2, stale + "--steps 5 --checkpoint-every 2 --checkpoint " + file);
  EXPECT_EQ(digest(2, "--optimizer adam --lr 0.01 --steps 5 --resume " + file), at_the_end);
  static_cast<void>(digest_with(3, 1, stale + "--steps 9 --resume " + file));
}

TEST_F(Served, RefusesTheStateOfAnotherOptimizer) {
  static_cast<void>(digest(2, "--steps 4 --checkpoint " + file));
  expect_misuse(with_servers(2, 1, "--optimizer adam --lr 0.01 --steps 7 --resume " + file),
                {"was trained with --optimizer sgd, and this run has --optimizer adam"});
}

}  // namespace
}  // namespace syncopate::test
