// How `syncopate run` starts ranks: their environment, other hosts, and what it refuses.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

TEST(RunStart, RanksFindTheirPlaceInTheEnvironment) {
  const Ended ended =
      syncopate({"run", "-n", "2", "--transport", "tcp", "--timeout", "2.5", "--env", "COLOUR=blue", "sh", "-c",
                 "echo $SYNCOPATE_RANK $SYNCOPATE_SIZE $SYNCOPATE_LOCAL_RANK $SYNCOPATE_TRANSPORT "
                 "$SYNCOPATE_TIMEOUT_MS $COLOUR ${SYNCOPATE_RENDEZVOUS%:*}"});
  EXPECT_EQ(ended.code, 0) << ended.error;
  expect_words(ended.output,
               {"[0] 0 2 0 tcp 2500 blue tcp://127.0.0.1\n", "[1] 1 2 1 tcp 2500 blue tcp://127.0.0.1\n"});
}

TEST(RunStart, RanksHaveTheVariablesOfTorchDistributed) {
  const std::string script =
      "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR; echo port $MASTER_PORT";
  const Ended ended = syncopate(run_script(2, script));
  EXPECT_NE(ended.output.find("[0] 0 2 0 2 127.0.0.1\n"), std::string::npos) << ended.output << ended.error;
  EXPECT_NE(ended.output.find("[1] 1 2 1 2 127.0.0.1\n"), std::string::npos) << ended.output;
  const Ended given = syncopate(
      {"run", "-n", "1", "--env", "MASTER_PORT=1234", "--rendezvous", "tcp://127.0.0.1:0", "sh", "-c", script});
  EXPECT_NE(given.output.find("[0] port 1234\n"), std::string::npos) << given.output << given.error;
}

TEST(RunStart, TheSecretIsFreshPrivateAndGoneAfterwards) {
  const std::string script =
      "stat -c %a $SYNCOPATE_SECRET_FILE; echo $SYNCOPATE_SECRET_FILE; cat $SYNCOPATE_SECRET_FILE";
  const auto first = lines_of(syncopate(run_script(1, script)).output);
  const auto second = lines_of(syncopate(run_script(1, script)).output);
  ASSERT_EQ(first.size(), 3U);
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(first[0], "[0] 600");
  EXPECT_EQ(first[2].size(), 4U + 64);
  EXPECT_NE(first[2], second[2]);
  EXPECT_FALSE(std::filesystem::exists(first[1].substr(4)));
}

/// Ends when server 1 answers again, whose process it has killed.
/// `syncopate run -n 1` of a script in namespaces of its own, where it is root and belongs to no job.
std::vector<std::string> in_namespaces(const std::string& kinds, const std::string& script) {
  return {"run", "-n", "1",  "--",  "env", "-u", "SYNCOPATE_RANK", "-u", "SYNCOPATE_SIZE", "unshare", "--map-root-user",
          kinds, "sh", "-c", script};
}

bool has_namespaces(const std::string& kinds) { return syncopate(in_namespaces(kinds, "true")).code == 0; }

TEST(RunStart, WithoutAWritableFolderTheVariableToSetIsNamed) {
  if (!has_namespaces("-m")) GTEST_SKIP() << "this kernel makes no namespaces";
  const TemporaryFolder folder;
  ASSERT_TRUE(std::filesystem::create_directory(folder / "own"));
  const std::string is_read_only =
      "for at in /run /tmp; do mount --bind $at $at && mount -o remount,ro,bind $at || exit 7; done\n"
      "mount -t tmpfs none " +
      folder / "own" + "\n";
  const std::string run = SYNCOPATE_PROGRAM " run -n 1 -- sh -c 'echo $SYNCOPATE_SECRET_FILE'";
  const Ended refused = syncopate(in_namespaces("-m", is_read_only + "env -u TMPDIR " + run));
  EXPECT_EQ(refused.code, 1) << refused.output;
  EXPECT_NE(refused.error.find("tried: /run/syncopate, /tmp/syncopate-0; set TMPDIR to a folder that only"),
            std::string::npos)
      << refused.error;
  const Ended ended = syncopate(in_namespaces("-m", is_read_only + "export TMPDIR=" + folder / "own" + "\n" + run));
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_NE(ended.output.find(folder / "own/syncopate-0/secret-"), std::string::npos) << ended.output;
}

TEST(RunStart, RanksMeetOverIPv6WhereLoopbackHasNoOtherAddress) {
  const std::string prepare = "ip link set lo up && ip address del 127.0.0.1/8 dev lo";
  if (!has_namespaces("-n") ||
      syncopate(in_namespaces("-n", prepare + " && ip -6 address show lo | grep ::1")).code != 0)
    GTEST_SKIP() << "this kernel makes no namespaces, or has no IPv6";
  const std::string bench = SYNCOPATE_PROGRAM " bench allreduce --ranks 2 --bytes 4B --transport tcp --json";
  const Ended ended = syncopate(in_namespaces("-n", prepare + "\n" + bench));
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_NE(ended.output.find("\"correct\":true"), std::string::npos) << ended.output << ended.error;
}

TEST(RunStart, AServerWithAReplicaIsStartedAgainWhenItIsKilled) {
  const std::string
      server = std::string(SYNCOPATE_PROGRAM) + " server status ${SYNCOPATE_SERVERS#*,}",
      script = "until " + server +
               " 2> /dev/null; do sleep 0.02; done\n"
               "for process in /proc/[0-9]*; do\n"
               "  if tr '\\0' ' ' < $process/cmdline 2> /dev/null | grep -q -e \"--index 1 .*${SYNCOPATE_SERVERS#*,}\";"
               " then kill -9 ${process#/proc/}; fi\n"
               "done\n"
               "until " +
               server + " 2> /dev/null; do sleep 0.02; done";
  const Ended ended = syncopate({"run", "-n", "1", "--servers", "2", "--replicas", "1", "--", "sh", "-c", script});
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_NE(ended.error.find("[server 1] killed by SIGKILL; started again\n"), std::string::npos) << ended.error;
}

TEST(RunStart, AServerThatDiesAsSoonAsItIsStartedIsNotStartedForEver) {
  const std::string script =  // kills the youngest child of `run` again and again
      "while sleep 0.01; do\n"
      "  read -r children < /proc/$PPID/task/$PPID/children\n"
      "  for child in $children; do [ $child = $$ ] || last=$child; done\n"
      "  kill -9 $last 2> /dev/null\n"
      "done";
  const Ended ended = syncopate({"run", "-n", "1", "--servers", "2", "--replicas", "1", "--", "sh", "-c", script});
  EXPECT_EQ(ended.code, 137) << ended.error;
  EXPECT_NE(ended.error.find(" was killed by SIGKILL, the first to end in failure\n"), std::string::npos)
      << ended.error;
}

TEST(RunStart, APortThatIsTakenIsRefusedBeforeARankStarts) {
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string place = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const Ended ended = syncopate({"run", "-n", "2", "--rendezvous", place, "--", "echo", "started"});
  close(taken);
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.error, "syncopate: --rendezvous " + place + ": Address already in use; give another port\n");
  EXPECT_EQ(ended.output, "");
}

TEST(RunStart, OwnServersAreProcessesOfTheProgram) {
  // The job ends with its rank, which therefore waits for what both servers print.
  const TemporaryFolder folder;
  const std::string script = "cd " + folder / "" +
                             "\n"
                             "if [ -n \"$SYNCOPATE_SERVER\" ]; then\n"
                             "  echo server $SYNCOPATE_SERVER at $SYNCOPATE_LISTEN\n"
                             "  : > printed.$SYNCOPATE_SERVER\n"
                             "else\n"
                             "  until [ -e printed.0 ] && [ -e printed.1 ]; do sleep 0.01; done\n"
                             "fi";
  const Ended ended = syncopate({"run", "-n", "1", "--servers", "2", "--own-servers", "--", "sh", "-c", script});
  for (const char* server : {"server 0 at @syncopate-run-", "server 1 at @syncopate-run-"})
    EXPECT_NE(ended.output.find(server), std::string::npos) << ended.output << ended.error;
  EXPECT_EQ(syncopate({"run", "--own-servers", "--", "true"}).code, 2);
  EXPECT_EQ(syncopate({"run", "--servers", "2", "--replicas", "1", "--own-servers", "--", "true"}).code, 2);
}

TEST(RunStart, WordsBehindTheProgramAreItsOwn) {
  const Ended ended = syncopate({"run", "-n", "1", "--", "echo", "--json", "-n", "--", "lab", "a b"});
  EXPECT_EQ(ended.output, "[0] --json -n -- lab a b\n");
  EXPECT_EQ(syncopate({"run", "-n", "1", "echo", "-n", "5"}).output, "[0] 5\n");
}

TEST(RunStart, ManyRanksNeedNoHigherLimitOfDescriptorsAndKeepTheirs) {
  const Ended ended = syncopate(
      run_script(1, "ulimit -Sn 40; exec " SYNCOPATE_PROGRAM " run -n 20 -- sh -c 'echo limit $(ulimit -Sn)'"));
  EXPECT_EQ(ended.code, 0) << ended.error;
  for (const char* rank : {"[0]", "[19]"})
    EXPECT_NE(ended.output.find(std::string("[0] ") + rank + " limit 40\n"), std::string::npos) << ended.output;
}

TEST(RunStart, AnUnknownProgramIsMisuse) {
  for (const std::string program : {"no-such-program-anywhere", "/no/such/file", "/etc/hostname"}) {
    const Ended ended = syncopate({"run", "--json", "-n", "2", "--", program});
    expect_misuse(ended, {program});
    EXPECT_EQ(nlohmann::json::parse(ended.output).at("kind"), "Misuse");
  }
}

TEST(RunStart, WrongOptionsAreMisuse) {
  const std::vector<std::vector<std::string>> wrong = {{"run"},
                                                       {"run", "-n", "0", "true"},
                                                       {"run", "-n", "two", "true"},
                                                       {"run", "--lab", "1furlong", "-n", "2", "true"},
                                                       {"run", "--hosts", "", "true"},
                                                       {"run", "--lab", "", "true"},
                                                       {"run", "--transport", "rdma", "true"},
                                                       {"run", "--hosts", "a:0", "true"},
                                                       {"run", "--hosts", "-oProxyCommand=x", "true"},
                                                       {"run", "--hosts", "a", "--lab", "1gbit", "true"},
                                                       {"run", "--timeout", "-1", "true"},
                                                       {"run", "--env", "=x", "true"},
                                                       {"no-such-command"},
                                                       {}};
  for (const auto& arguments : wrong) {
    const Ended ended = syncopate(arguments);
    EXPECT_EQ(ended.code, 2) << testing::PrintToString(arguments);
    EXPECT_NE(ended.error, "") << testing::PrintToString(arguments);
  }
}

TEST(RunStart, TheLogLevelIsAlsoTheRanks) {
  EXPECT_EQ(syncopate({"run", "--log-level", "debug", "--", "sh", "-c", "echo $SYNCOPATE_LOG"}).output, "[0] debug\n");
}

TEST(RunStart, AHostWithoutRoomForARankIsToldFromNoHost) {
  EXPECT_NE(syncopate({"run", "--hosts", "a:0", "true"}).error.find("'a:0' lacks a number of ranks"),
            std::string::npos);
  EXPECT_NE(syncopate({"run", "--hosts", "-x:2", "true"}).error.find("'-x:2' is not a host"), std::string::npos);
}

/// A stand-in for ssh that runs the command here and writes down how it was called.
class OtherHosts : public testing::Test {
 protected:
  OtherHosts() {
    std::ofstream script(folder_ / "ssh");
    script << "#!/bin/sh\n"
              "echo \"$@\" >>'"
           << folder_ / "calls"
           << "'\n"
              "while [ \"${1#-}\" != \"$1\" ]; do case $1 in -o) shift 2 ;; *) shift ;; esac; done\n"
              "shift\n"
              "exec sh -c \"$*\"\n";
    script.close();
    std::filesystem::permissions(folder_ / "ssh", std::filesystem::perms(0755));
  }
  StartOptions by_stand_in() {
    return {.environment = {{"SYNCOPATE_SSH", folder_ / "ssh"}, {"SYNCOPATE_LOG", "info"}}, .terminal = false};
  }
  TemporaryFolder folder_;
};

TEST_F(OtherHosts, RanksFillHostsInOrderAndWordsSurviveTheJourney) {
  const Ended ended =
      syncopate({"run", "--hosts", "127.0.0.1,localhost:2", "--env", "NOTE=it's \"$HOME\"", "--", "sh", "-c",
                 "echo $SYNCOPATE_RANK $SYNCOPATE_SIZE $SYNCOPATE_LOCAL_RANK $SYNCOPATE_LOG \"$NOTE\" \"$0\"", "a  'b"},
                by_stand_in());
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(file_text(folder_ / "calls").find("HOME"), std::string::npos) << "the environment stands in an argument";
  for (const std::string line : {"[0] 0 3 0", "[1] 1 3 0", "[2] 2 3 1"})
    EXPECT_NE(ended.output.find(line + " info it's \"$HOME\" a  'b\n"), std::string::npos) << ended.output;
}

TEST_F(OtherHosts, TheSecretIsNeverAnArgumentAndGoesWithTheRank) {
  const Ended ended = syncopate({"run", "--hosts", "127.0.0.1:2", "--", "sh", "-c",
                                 "cat $SYNCOPATE_SECRET_FILE; echo; echo $SYNCOPATE_SECRET_FILE; sleep 0.1"},
                                by_stand_in());
  EXPECT_EQ(ended.code, 0) << ended.error;
  const std::string calls = file_text(folder_ / "calls");
  EXPECT_NE(calls.find("BatchMode=yes"), std::string::npos);
  for (const std::string& line : lines_of(ended.output)) {
    const std::string word = line.substr(4);
    if (word.front() != '/') {
      EXPECT_EQ(word.size(), 64U);
      EXPECT_EQ(calls.find(word), std::string::npos) << "the secret stands in an argument";
      continue;
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::filesystem::exists(word) && std::chrono::steady_clock::now() < deadline) {
    }
    EXPECT_FALSE(std::filesystem::exists(word));
  }
}

TEST_F(OtherHosts, TheRankThatFailedFirstIsNamedThroughSsh) {
  // Rank 1 leaves its group while rank 0 still needs it, and ends only when rank 0 has ended.
  const std::string bench = std::string(SYNCOPATE_PROGRAM) + " bench allreduce --bytes 4KiB --transport tcp";
  const std::string over = folder_ / "over";
  const Ended ended =
      syncopate({"run", "--hosts", "127.0.0.1:2", "--", "sh", "-c",
                 "if [ $SYNCOPATE_RANK = 1 ]; then " + bench + " --rounds 1 --budget 0.01; until [ -e " + over +
                     " ]; do sleep 0.02; done; exit 9; fi; " + bench + " --rounds 1000 --budget 10; c=$?; touch " +
                     over + "; exit $c"},
                by_stand_in());
  EXPECT_EQ(ended.code, 9) << ended.error;
  EXPECT_NE(ended.error.find("rank 1 exited with code 9, the first to fail\n"), std::string::npos) << ended.error;
  EXPECT_EQ(ended.error.find("syncopate: first failed"), std::string::npos) << ended.error;
}

TEST_F(OtherHosts, AnEnvironmentOfSeveralLinesArrives) {
  const Ended ended = syncopate(
      {"run", "--hosts", "127.0.0.1", "--env", "NOTE=one\n two\\n\n", "--", "sh", "-c", "printf '%s|\\n' \"$NOTE\""},
      by_stand_in());
  EXPECT_EQ(ended.output, "[0] one\n[0]  two\\n\n[0] |\n") << ended.error;
}

TEST_F(OtherHosts, AnEnvironmentThatIsTooLongIsRefusedByItsLength) {
  const Ended ended =
      syncopate({"run", "--hosts", "127.0.0.1", "--env", "PATHS=" + std::string(15'000, '/'), "true"}, by_stand_in());
  expect_misuse(ended, {"allowed: 59000; shorten the values of --env"});
}

TEST_F(OtherHosts, AStarterThatReadsNoMoreDoesNotEndTheLauncher) {
  std::ofstream(folder_ / "ssh") << "#!/bin/sh\nexec <&-\necho ready\nexec sleep 1\n";
  Running run({"run", "--hosts", "127.0.0.1", "--", "true"}, by_stand_in());
  ASSERT_TRUE(run.says("ready"));
  run.send(SIGTERM);
  EXPECT_EQ(run.end().code, 0) << "128 + SIGPIPE is 141";
}

TEST_F(OtherHosts, CodesAndSignalsTravel) {
  EXPECT_EQ(syncopate({"run", "--hosts", "127.0.0.1:2", "--", "sh", "-c", "exit 5"}, by_stand_in()).code, 5);
  EXPECT_EQ(syncopate({"run", "--hosts", "127.0.0.1:2", "--", "sh", "-c", "kill -9 $$"}, by_stand_in()).code, 137);
  Running run({"run", "--hosts", "127.0.0.1:2", "--", "sh", "-c",
               "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done"},
              by_stand_in());
  ASSERT_TRUE(run.says("ready", 2));
  run.send(SIGINT);
  EXPECT_TRUE(run.says("caught", 2));
  EXPECT_EQ(run.end().code, 9);
}

TEST_F(OtherHosts, TooFewPlacesAreMisuse) {
  EXPECT_EQ(syncopate({"run", "--hosts", "127.0.0.1:2", "-n", "3", "--", "true"}, by_stand_in()).code, 2);
}

}  // namespace
}  // namespace syncopate::test
