// How `syncopate run` ends: codes, first failures, signals, and nothing left behind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

TEST(RunEnd, SucceedsWhenEveryRankDoes) { EXPECT_EQ(syncopate(run_script(3, "true")).code, 0); }

TEST(RunEnd, HasTheCodeOfTheFirstFailureAndNamesItsRank) {
  const Ended ended = syncopate(run_script(3, "if [ $SYNCOPATE_RANK = 1 ]; then exit 7; fi; sleep 0.3; exit 1"));
  EXPECT_EQ(ended.code, 7);
  EXPECT_NE(ended.error.find("rank 1 exited with code 7"), std::string::npos) << ended.error;
}

TEST(RunEnd, AKilledRankIs128PlusItsSignalAndTheOthersEndWithTheirOwnError) {
  const Ended ended = syncopate(run_script(
      3, "if [ $SYNCOPATE_RANK = 2 ]; then kill -9 $$; fi; sleep 0.3; echo own error of $SYNCOPATE_RANK; exit 1"));
  EXPECT_EQ(ended.code, 137);
  EXPECT_NE(ended.error.find("rank 2 was killed by SIGKILL"), std::string::npos) << ended.error;
  expect_words(ended.output, {"[0] own error of 0", "[1] own error of 1"});
}

TEST(RunEnd, TheRankThatTheOthersErrorsBlameIsNamedThoughItEndsLast) {
  const TemporaryFolder folder;
  const std::string gone = folder / "gone";
  const Ended ended =
      syncopate(run_script(2,
                           "if [ $SYNCOPATE_RANK = 0 ]; then echo 'syncopate: first failed rank 1' "
                           ">/proc/$$/fd/${SYNCOPATE_BLAME_FD%:*}; echo own "
                           "error >&2; (sleep 0.3; touch " +
                               gone + ") & exit 1; fi; until [ -e " + gone + " ]; do sleep 0.02; done; exit 7"));
  EXPECT_EQ(ended.code, 7);
  expect_words(ended.error, {"rank 1 exited with code 7, the first to fail\n", "[0] own error\n"});
  EXPECT_EQ(ended.error.find("first failed"), std::string::npos) << "that line is for `run`: " << ended.error;
}

TEST(RunEnd, ABlamedRankThatHadToBeAskedToEndIsNotTheFirstFailure) {
  const Ended ended = syncopate(run_script(2,
                                           "if [ $SYNCOPATE_RANK = 0 ]; then echo 'syncopate: first failed rank 1' "
                                           ">/proc/$$/fd/${SYNCOPATE_BLAME_FD%:*}; exit 4; fi; exec sleep 1000"));
  EXPECT_EQ(ended.code, 4);
  EXPECT_NE(ended.error.find("rank 0 exited with code 4, the first to end in failure"), std::string::npos)
      << ended.error;
}

TEST(RunEnd, ALineOnStandardErrorBlamesNobody) {
  const Ended ended = syncopate(
      run_script(2, "if [ $SYNCOPATE_RANK = 0 ]; then echo 'syncopate: first failed rank 1' >&2; exit 4; fi; exit 0"));
  EXPECT_EQ(ended.code, 4);
  EXPECT_NE(ended.error.find("[0] syncopate: first failed rank 1\n"), std::string::npos) << ended.error;
}

TEST(RunEnd, AGroupsOwnErrorBlamesTheRankThatFailed) {
  // Rank 1 leaves its group while the others still need it, and ends only when they have ended.
  const std::string bench = std::string(SYNCOPATE_PROGRAM) + " bench allreduce --bytes 4KiB --transport tcp";
  const TemporaryFolder folder;
  const std::string over = folder / "over";
  const Ended ended =
      syncopate(run_script(3, "if [ $SYNCOPATE_RANK = 1 ]; then " + bench + " --rounds 1 --budget 0.01; until [ -e " +
                                  over + " ]; do sleep 0.02; done; exit 9; fi; " + bench +
                                  " --rounds 1000 --budget 10; c=$?; touch " + over + "; exit $c"));
  EXPECT_EQ(ended.code, 9) << ended.error;
  EXPECT_NE(ended.error.find("rank 1 exited with code 9, the first to fail\n"), std::string::npos) << ended.error;
}

TEST(RunEnd, AStoppedRankIsNamedBesideTheFirstThatGaveItUp) {
  // The name of rank 1's file is its process id; rank 0 gives up when the kernel shows it stopped.
  const TemporaryFolder folder;
  const std::string script = "case $SYNCOPATE_RANK in 1) echo $$ > " + folder / "draft" + "; mv " + folder / "draft" +
                             " " + folder / "pid" + "; kill -STOP $$;; 0) while [ ! -e " + folder / "pid" +
                             " ]; do sleep 0.02; done; p=$(cat " + folder / "pid" +
                             "); until grep -q '^State:.T' /proc/$p/status; do sleep 0.02; done; exit 4;; esac";
  const Ended ended = syncopate(run_script(2, script));
  EXPECT_EQ(ended.code, 4);
  EXPECT_NE(ended.error.find("rank 0 exited with code 4, the first to end in failure; rank 1 was "
                             "stopped then"),
            std::string::npos)
      << ended.error;
}

TEST(RunEnd, ARankThatEndsByATerminationSignalIsNotCalledKilled) {
  const Ended ended = syncopate(run_script(2, "if [ $SYNCOPATE_RANK = 1 ]; then kill -TERM $$; fi"));
  EXPECT_EQ(ended.code, 143);
  EXPECT_NE(ended.error.find("rank 1 was ended by SIGTERM, the first to end in failure"), std::string::npos)
      << ended.error;
}

TEST(RunEnd, ASignalBeforeTheRanksStartStartsNone) {
  const TemporaryFolder folder;
  const Ended ended = syncopate(run_script(2, "touch " + folder / "started"), {.pending_signal = SIGINT});
  EXPECT_EQ(ended.code, 130);
  EXPECT_EQ(ended.error, "syncopate run: interrupted by SIGINT\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "started"));
}

TEST(RunEnd, AWorkerThatFailsBesideServersIsNamedAtOnce) {
  const TemporaryFolder folder;
  const std::string named = folder / "named";
  Running run({"run", "-n", "2", "--servers", "1", "--", "sh", "-c",
               "if [ $SYNCOPATE_RANK = 1 ]; then kill -9 $$; fi; until [ -e " + named + " ]; do sleep 0.02; done"},
              {.terminal = true});
  if (!run.says("[1] rank 1 was killed by SIGKILL; the others are not stopped")) FAIL() << run.end().output;
  std::ofstream{named};
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 137);
  EXPECT_NE(ended.output.find("syncopate run: rank 1 was killed by SIGKILL, the first to end in failure"),
            std::string::npos)
      << ended.output;
}

TEST(RunEnd, RanksThatDoNotFollowAFailureAreAskedThenKilled) {
  const Ended ended =
      syncopate(run_script(3,
                           "case $SYNCOPATE_RANK in 0) trap 'echo asked; exit 0' TERM; while :; do sleep 0.1; done;;"
                           "1) exit 3;; 2) trap '' TERM; while :; do sleep 0.1; done;; esac"));
  EXPECT_EQ(ended.code, 3);
  EXPECT_NE(ended.output.find("[0] asked"), std::string::npos) << ended.output;
}

TEST(RunEnd, AWorkerThatIgnoresASignalIsKilledWhenAnotherHasEndedByIt) {
  Running run({"run", "-n", "2", "--servers", "1", "--", "sh", "-c",
               "if [ $SYNCOPATE_RANK = 1 ]; then trap '' TERM; fi; echo ready; while :; do sleep 0.05; done"});
  ASSERT_TRUE(run.says("ready", 2));
  run.send(SIGTERM);
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 143) << ended.error;
  EXPECT_NE(ended.error.find("syncopate run: interrupted by SIGTERM"), std::string::npos) << ended.error;
}

TEST(RunEnd, ASignalEndsAJobWhoseOutputIsNotRead) {
  // Rank 0 fills the pipes before the signal, rank 1 after it.
  Running run(run_script(2,
                         "if [ $SYNCOPATE_RANK = 0 ]; then echo ready; exec yes; fi\n"
                         "trap 'seq 100000; exit 9' TERM; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(run.says("ready", 2));
  run.send(SIGTERM);
  EXPECT_TRUE(vanishes(run.pid()));
  EXPECT_NE(run.end().error.find("syncopate run: interrupted by SIGTERM"), std::string::npos);
}

TEST(RunEnd, SignalsReachEveryRank) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Running run(run_script(2, "trap 'echo caught; exit 9' INT TERM HUP; echo ready; while :; do sleep 0.05; done"));
    ASSERT_TRUE(run.says("ready", 2));
    run.send(number);
    EXPECT_TRUE(run.says("caught", 2)) << "signal " << number;
    const Ended ended = run.end();
    EXPECT_EQ(ended.code, 9);
    EXPECT_NE(ended.error.find("syncopate run: interrupted by SIG"), std::string::npos) << ended.error;
    EXPECT_EQ(ended.error.find("rank"), std::string::npos) << "nobody failed: " << ended.error;
  }
}

TEST(RunEnd, ASecondInterruptKills) {
  Running run(run_script(2, "trap 'echo no' INT; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(run.says("ready", 2));
  run.send(SIGINT);
  ASSERT_TRUE(run.says("no", 2));
  run.send(SIGINT);
  EXPECT_EQ(run.end().code, 137);
}

TEST(RunEnd, AnInterruptedWorkerHasItsServersUntilItEnds) {
  const std::string status = std::string(SYNCOPATE_PROGRAM) + " server status $SYNCOPATE_SERVERS > /dev/null 2>&1";
  Running run({"run", "-n", "1", "--servers", "1", "--", "sh", "-c",
               "trap 'for i in 0 1 2 3 4 5 6 7 8 9; do " + status + " || exit 1; done; exit 9' INT\nuntil " + status +
                   "; do sleep 0.02; done; echo ready; while :; do sleep 0.05; done"});
  if (!run.says("ready")) FAIL() << run.end().error;
  run.send(SIGINT);
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 9) << ended.error;
  EXPECT_NE(ended.error.find("syncopate run: interrupted by SIGINT"), std::string::npos) << ended.error;
}

TEST(RunEnd, AKilledLauncherLeavesNoProcessAndNoSecret) {
  Running run(run_script(2, "sleep 1000 & echo $SYNCOPATE_SECRET_FILE $$ $!; wait"));
  ASSERT_TRUE(run.says("\n", 2));
  const auto lines = lines_of(run.output());
  run.send(SIGKILL);
  EXPECT_EQ(run.end().code, 137);
  for (const std::string& line : lines) {
    std::istringstream words(line.substr(4));
    std::string secret;
    pid_t shell = 0, child = 0;
    words >> secret >> shell >> child;
    ASSERT_GT(child, 0) << line;
    EXPECT_TRUE(vanishes(shell));
    EXPECT_TRUE(vanishes(child));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::filesystem::exists(secret) && std::chrono::steady_clock::now() < deadline) {
    }
    EXPECT_FALSE(std::filesystem::exists(secret));
  }
}

TEST(RunEnd, WhatARankLeftRunningIsKilled) {
  const Ended ended = syncopate(run_script(1, "sleep 1000 & echo $!"));
  ASSERT_EQ(ended.output.substr(0, 4), "[0] ");
  EXPECT_TRUE(vanishes(std::atoi(ended.output.c_str() + 4)));
}

TEST(RunEnd, AStoppedLauncherStopsItsRanksAndContinuesThem) {
  // A shell that starts programs could be stopped amid a vfork, which the system does not call stopped.
  Running run(run_script(1, "echo $$; exec sleep 1000"));
  ASSERT_TRUE(run.says("\n"));
  const std::string rank = run.output().substr(4, run.output().find('\n') - 4);
  const auto reaches = [](const std::string& process, char state) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      const std::string text = file_text("/proc/" + process + "/stat");
      if (text.size() > 2 && text.at(text.rfind(')') + 2) == state) return true;
    }
    return false;
  };
  run.send(SIGTSTP);
  EXPECT_TRUE(reaches(rank, 'T'));
  EXPECT_TRUE(reaches(std::to_string(run.pid()), 'T'));  // as a shell: it continues only what it has seen stop
  run.send(SIGCONT);
  EXPECT_TRUE(reaches(rank, 'S'));
  run.send(SIGTERM);
  EXPECT_EQ(run.end().code, 143);
}

}  // namespace
}  // namespace syncopate::test
