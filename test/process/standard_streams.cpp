// Standard output and error that cannot be written: a full disk, a closed pipe, a closed terminal.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

class FailedWrites : public testing::Test {
 protected:
  FailedWrites() {
    std::ofstream(profile_) << R"({"model": "one", "forward_s": 0, "layers": [
        {"name": "stem", "elements": 1, "backward_s": 0.9}]})";
    std::ofstream(cluster_) << R"({"ranks": 2, "links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1}},
        "costs": {"allreduce": {"affine": {"a_s": 1, "b_s_per_byte": 1}}}})";
  }

  TemporaryFolder folder_;
  const std::string profile_ = folder_ / "profile.json", cluster_ = folder_ / "cluster.json";
};

TEST_F(FailedWrites, ToStandardOutputAreAFailureOfEveryCommandWithOneLine) {
  const std::vector<std::vector<std::string>> commands{
      {"--version"},
      {"info"},
      {"info", "codec", "--json"},
      {"help", "run"},
      {"report", "--help"},
      {"run", "-n", "2", "--", "echo", "text"},
      {"run", "-n", "2", "--json", "--", "echo", "{}"},
      {"lab", "status"},
      {"data", "draw", "--out", folder_ / "images", "--train", "10", "--test", "10"},
      {"profile", "--architecture", "vgg16", "--throughput-gflops", "1000", "--batch", "8", "-o", folder_ / "vgg16"},
      {"plan", profile_, "--cluster", cluster_},
      {"plan", "collective", "ring", "--ranks", "4", "--bytes", "4000"},
      {"simulate", profile_, "--cluster", cluster_},
      {"fit", "-n", "2", "--bytes", "64", "--budget", "0.001", "--limit", "2", "-o", folder_ / "fitted"},
      {"bench", "codec", "--elements", "1K", "--rounds", "1", "--codec", "fp16"}};
  for (const auto& command : commands) {
    const Ended ended = syncopate(command, {.output_to = "/dev/full"});
    EXPECT_EQ(ended.code, 1) << command[0] << ": " << ended.error;
    EXPECT_EQ(lines_of(ended.error).back(), "syncopate: cannot write to standard output: No space left on device")
        << command[0] << ": " << ended.error;
  }
}

TEST_F(FailedWrites, ToStandardErrorChangeNoExitCode) {
  EXPECT_EQ(syncopate(run_script(2, "echo text >&2; exit 3"), {.error_to = "/dev/full"}).code, 3);
  EXPECT_EQ(syncopate({"info", "nothing"}, {.error_to = "/dev/full"}).code, 2);
  EXPECT_EQ(syncopate({}, {.error_to = "/dev/full"}).code, 2);
}

TEST_F(FailedWrites, ToAPipeWithoutAReaderEndACommandBySigpipe) {
  for (const std::string& ignored : {"", "trap '' PIPE; "}) {
    const Ended ended = syncopate(run_script(
        1, ignored + "mkfifo " + folder_ / "pipe" + "; exec 3<> " + folder_ / "pipe" + " 4> " + folder_ / "pipe" +
               " 3<&-; " SYNCOPATE_PROGRAM " info >&4 4>&-; echo $?; rm " + folder_ / "pipe"));
    EXPECT_EQ(ended.output, "[0] 141\n") << ended.error;
    EXPECT_EQ(ended.error, "");
  }
}

TEST_F(FailedWrites, ToAClosedDescriptorReachNoOtherFile) {
  const std::string run = SYNCOPATE_PROGRAM " run -n 2 -- sh -c ";
  const Ended ended =
      syncopate(run_script(1, run + "true <&- >&-; echo $? >&2; " + run + "'echo text' <&- >&-; echo $? >&2; " + run +
                                  "'cat; exit 7' <&- >&- 2>&-; echo $? >&2"));
  EXPECT_EQ(ended.error, "[0] 0\n[0] syncopate: cannot write to standard output: Bad file descriptor\n[0] 1\n[0] 7\n");
}

TEST_F(FailedWrites, ToAClosedTerminalLeaveTheEndOfAJobAsItIs) {
  const std::string seen = folder_ / "seen";
  Running run(run_script(2, "trap 'echo bye; echo bye >&2; touch " + seen +
                                "$SYNCOPATE_RANK; exit 9' HUP; echo ready; while :; do sleep 0.05; done"),
              {.terminal = true});
  ASSERT_TRUE(run.says("ready", 2));
  run.close_terminal();
  EXPECT_EQ(run.end().code, 9);
  for (const char* rank : {"0", "1"}) EXPECT_TRUE(std::filesystem::exists(seen + rank)) << rank;
}

TEST_F(FailedWrites, AJobThatIgnoresHangupsOutlivesThem) {
  const Ended ended = syncopate(run_script(
      1, "trap '' HUP; exec " SYNCOPATE_PROGRAM " run -n 1 -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'"));
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(ended.output, "[0] [0] alive\n");
}

}  // namespace
}  // namespace syncopate::test
