// Emulated hosts: they are apart, reach each other, keep their rate, and leave nothing behind.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

constexpr std::size_t kTrafficBytes = 5'000'000;
constexpr std::uint16_t kPort = 5'001;

/// A lab of its own for each test; skipped where the kernel lets this user make none.
class Lab : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer's own thread forbids changing namespaces";
#endif
    const Ended up = syncopate({"lab", "up", "3", "100mbit", "--name", name_});
    if (up.code == 1 && up.error.find("no lab on this machine") != std::string::npos) GTEST_SKIP() << up.error;
    ASSERT_EQ(up.code, 0) << up.error;
  }
  void TearDown() override { (void)syncopate({"lab", "down", "--name", name_}); }

  Ended on(int host, std::vector<std::string> command) {
    std::vector<std::string> words = {"lab", "exec", "--name", name_, std::to_string(host)};
    words.insert(words.end(), command.begin(), command.end());
    return syncopate(words);
  }
  static std::vector<std::string> peer(const char* test) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    return {self, "--gtest_also_run_disabled_tests", std::string("--gtest_filter=LabPeer.DISABLED_") + test};
  }
  const std::string name_ = "test-" + std::to_string(getpid());
};

sockaddr_in address_of(const char* text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

// The two ends of the traffic test, each run on a host by way of this program: not tests by themselves.
TEST(LabPeer, DISABLED_Receive) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = address_of("10.78.0.1");
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  std::puts("listening");
  std::fflush(stdout);
  const int peer = accept(listener, nullptr, nullptr);
  std::vector<char> buffer(1 << 16);
  std::size_t total = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (ssize_t got; (got = read(peer, buffer.data(), buffer.size())) > 0;) total += static_cast<std::size_t>(got);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(total, kTrafficBytes);
  std::printf("\nbits per second: %.0f\n", static_cast<double>(total) * 8 / time.count());
}

TEST(LabPeer, DISABLED_Send) {
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = address_of("10.78.0.1");
  ASSERT_EQ(connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::vector<char> bytes(kTrafficBytes, 'x');
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t wrote = write(peer, bytes.data() + sent, bytes.size() - sent);
    ASSERT_GT(wrote, 0);
    sent += static_cast<std::size_t>(wrote);
  }
  close(peer);
}

TEST_F(Lab, HostsHaveNamesAndAddressesOfTheirOwn) {
  EXPECT_EQ(on(2, {"hostname"}).output, "sync2\n");
  EXPECT_NE(on(2, {"ip", "-4", "addr", "show", "eth0"}).output.find("10.78.0.3/24"), std::string::npos);
  EXPECT_NE(on(0, {"ip", "link"}).output, on(1, {"ip", "link"}).output);
  EXPECT_NE(on(0, {"cat", "/etc/hosts"}).output.find("10.78.0.2 sync1"), std::string::npos);
  EXPECT_EQ(on(1, {"sh", "-c", "exit 6"}).code, 6);
  EXPECT_EQ(on(0, {"pwd"}).output, std::filesystem::current_path().string() + "\n");
}

TEST_F(Lab, HostsReachEachOtherByName) {
  if (std::system("command -v ping >/dev/null") != 0) GTEST_SKIP() << "no ping on this machine";
  const Ended ping = on(0, {"ping", "-c", "1", "-W", "5", "sync2"});
  EXPECT_EQ(ping.code, 0) << ping.output << ping.error;
}

TEST_F(Lab, APortCarriesNoMoreThanItsRate) {
  const std::vector<std::string> exec = {"lab", "exec", "--name", name_, "0"};
  std::vector<std::string> words = exec;
  for (const std::string& word : peer("Receive")) words.push_back(word);
  Running receiver(words);
  ASSERT_TRUE(receiver.says("listening"));
  EXPECT_EQ(on(1, peer("Send")).code, 0);
  const Ended received = receiver.end();
  EXPECT_EQ(received.code, 0) << received.output;
  const std::string label = "bits per second: ";
  const auto at = received.output.find(label);
  ASSERT_NE(at, std::string::npos);
  const double rate = std::atof(received.output.c_str() + at + label.size());
  EXPECT_LT(rate, 102e6);  // a bucket of 22 kB, of 5 MB in all
  EXPECT_GT(rate, 10e6);
  const auto rows = lines_of(syncopate({"lab", "status", "--json"}).output);
  bool counted = false;
  for (const std::string& line : rows) {
    const auto row = nlohmann::json::parse(line);
    if (row.at("lab") == name_ && row.contains("host") && row.at("host") == 1)
      counted = row.at("sent_bytes").get<std::size_t>() > kTrafficBytes;
  }
  EXPECT_TRUE(counted);
}

TEST_F(Lab, ARunningLabIsReshaped) {
  const auto shaped = [this](int host) { return on(host, {"tc", "qdisc", "show", "dev", "eth0"}).output; };
  EXPECT_NE(shaped(1).find("rate 100Mbit"), std::string::npos) << shaped(1);
  EXPECT_EQ(syncopate({"lab", "rate", "2gbit", "--name", name_}).code, 0);
  EXPECT_NE(shaped(1).find("rate 2Gbit"), std::string::npos) << shaped(1);
  EXPECT_EQ(syncopate({"lab", "rate", "none", "--name", name_}).code, 0);
  EXPECT_EQ(shaped(1).find("tbf"), std::string::npos) << shaped(1);
}

TEST_F(Lab, UpAgainReplacesAndDownAgainIsFine) {
  EXPECT_EQ(syncopate({"lab", "up", "2", "10mbit", "--name", name_}).code, 0);
  EXPECT_EQ(on(1, {"true"}).code, 0);
  EXPECT_EQ(on(2, {"true"}).code, 2);
  EXPECT_EQ(syncopate({"lab", "down", "--name", name_}).code, 0);
  EXPECT_EQ(syncopate({"lab", "down", "--name", name_}).code, 0);
  EXPECT_EQ(on(0, {"true"}).code, 2);
}

TEST_F(Lab, DownEndsWhatRunsOnItsHosts) {
  Running inside(
      {"lab", "exec", "--name", name_, "1", "sh", "-c", "trap '' TERM; echo here; while :; do sleep 0.1; done"});
  ASSERT_TRUE(inside.says("here"));
  EXPECT_EQ(syncopate({"lab", "down", "--name", name_}).code, 0);
  EXPECT_EQ(inside.end().code, 137);
}

TEST_F(Lab, WrongWordsAreMisuse) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"lab"},
                                             {"lab", "up", "2"},
                                             {"lab", "up", "none", "1gbit"},
                                             {"lab", "up", "0", "1gbit"},
                                             {"lab", "up", "2", "fast"},
                                             {"lab", "up", "2", "1gbit", "--name", "a/b"},
                                             {"lab", "exec", "--name", name_, "0"},
                                             {"lab", "exec", "--name", name_, "x", "true"},
                                             {"lab", "rate", "1gbit", "--name", "no-such-lab"}})
    EXPECT_EQ(syncopate(words).code, 2) << testing::PrintToString(words);
}

TEST_F(Lab, RunGivesEachRankAHostAndTakesThemAwayAtTheEnd) {
  Running run({"run", "-n", "2", "--lab", "1gbit", "--", "sh", "-c",
               "hostname; echo $SYNCOPATE_INTERFACE $SYNCOPATE_RENDEZVOUS"});
  const std::string lab = "run-" + std::to_string(run.pid());
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 0) << ended.error;
  expect_words(ended.output, {"[0] sync0\n", "[1] sync1\n", "[1] eth0 tcp://10.78.0.1:"});
  EXPECT_EQ(syncopate({"lab", "status"}).output.find(lab), std::string::npos);
}

TEST_F(Lab, AKilledRunTakesItsLabAlong) {
  Running run({"run", "-n", "2", "--lab", "1gbit", "--", "sh", "-c", "echo $$; sleep 1000"});
  ASSERT_TRUE(run.says("\n", 2));
  const std::string lab = "run-" + std::to_string(run.pid());
  ASSERT_NE(syncopate({"lab", "status"}).output.find(lab), std::string::npos);
  std::vector<pid_t> ranks;
  for (const std::string& line : lines_of(run.output())) ranks.push_back(std::atoi(line.c_str() + 4));
  run.send(SIGKILL);
  EXPECT_EQ(run.end().code, 137);
  for (const pid_t rank : ranks) EXPECT_TRUE(vanishes(rank));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (syncopate({"lab", "status"}).output.find(lab) != std::string::npos)
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST_F(Lab, AUserWithoutRightsHasLabsWhereTheKernelAllows) {
  if (geteuid() != 0 || access("/usr/bin/setpriv", X_OK) != 0) GTEST_SKIP() << "needs root, to become somebody else";
  const std::string as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
  const std::string program = "cd / && " + as_nobody + SYNCOPATE_PROGRAM;
  if (std::system((as_nobody + "test -x " SYNCOPATE_PROGRAM).c_str()) != 0)
    GTEST_SKIP() << "an unprivileged user cannot read the program";
  const std::string named = " --name " + name_ + "-nobody";
  const int up = std::system((program + " lab up 2 1gbit" + named).c_str());
  if (WEXITSTATUS(up) == 1) GTEST_SKIP() << "this kernel does not let users make user namespaces";
  ASSERT_EQ(up, 0);
  EXPECT_EQ(std::system((program + " lab exec" + named + " 0 sh -c 'test $(hostname) = sync0'").c_str()), 0);
  EXPECT_EQ(std::system((program + " lab down" + named).c_str()), 0);
}

TEST_F(Lab, HasSeveralRanksOnAHostOnRequest) {
  const Ended ended = syncopate({"run", "-n", "3", "--lab", "100mbit", "--ranks-per-host", "2", "--", "sh", "-c",
                                 "echo $(hostname) $SYNCOPATE_LOCAL_RANK $LOCAL_WORLD_SIZE"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  for (const char* line : {"[0] sync0 0 2\n", "[1] sync0 1 2\n", "[2] sync1 0 1\n"})
    EXPECT_NE(ended.output.find(line), std::string::npos) << line << ended.output;
}

TEST_F(Lab, RanksOfOneHostShareMemoryAndThePort) {
  const Ended ended =
      syncopate({"bench", "allreduce", "--json", "--rounds", "1", "--budget", "0.2", "--ranks", "4", "--lab", "100mbit",
                 "--ranks-per-host", "2", "--bytes", "1MiB", "--algorithm", "hierarchical", "--memory", "own"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto row = nlohmann::json::parse(lines_of(ended.output).at(0));
  EXPECT_EQ(row.at("transport"), "shm+tcp");
  EXPECT_EQ(row.at("ranks_per_host"), 2);
  EXPECT_DOUBLE_EQ(row.at("bound_seconds"), 1048576 * 8 / 100e6) << "2 (M-1)/M S/BW between two hosts";
}

TEST_F(Lab, MeasuresExchangesBesideTheirLaws) {
  const Ended ended = syncopate({"bench", "exchange", "--json", "--lab", "100mbit", "--elements", "40K", "--density",
                                 "0.05", "--rounds", "1", "--steps", "2", "--codec", "topk,mstopk", "--algorithm",
                                 "ring,torus_2d,double_binary_tree"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto lines = lines_of(ended.output);
  ASSERT_EQ(lines.size(), 7U) << ended.output;
  for (const std::string& line : lines) {
    const auto row = nlohmann::json::parse(line);
    for (const char* key : {"exchange", "codec", "algorithm", "hosts", "ranks", "elements", "density", "seconds",
                            "model_seconds", "ratio", "wire_bytes", "correct"})
      EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_EQ(row.at("ranks"), 4);
    EXPECT_EQ(row.at("correct"), true) << line;
    EXPECT_GT(row.at("wire_bytes").get<double>(), 0);
  }
  EXPECT_EQ(nlohmann::json::parse(lines[2]).at("algorithm"), "double_binary_tree");
  EXPECT_EQ(nlohmann::json::parse(lines[4]).at("codec"), "topk:0.05");
  EXPECT_EQ(nlohmann::json::parse(lines[6]).at("exchange"), "hierarchical");
  EXPECT_EQ(nlohmann::json::parse(lines[6]).at("codec"), "mstopk:0.05");
}

}  // namespace
}  // namespace syncopate::test
