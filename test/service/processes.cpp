// Processes: a peer that is killed is lost at once, one that is stopped after the silence; exits and forks do not hang.
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "service/ends.hpp"

namespace syncopate::server::rpc {
namespace {

using namespace test;

constexpr char kPart[] = "SYNCOPATE_TEST_PART", kAddress[] = "SYNCOPATE_TEST_ADDRESS";

std::string own_name(const char* purpose) {
  return std::string("@syncopate-") + purpose + "-" + std::to_string(::getpid());
}

/// This test program again, as another process that plays a part of `Part.DISABLED_IsPlayed` at an address.
class Child final {
 public:
  Child(const std::string& part, const std::string& address) {
    std::string name = "test", filter = "--gtest_filter=Part.DISABLED_IsPlayed",
                also = "--gtest_also_run_disabled_tests";
    char* arguments[] = {name.data(), filter.data(), also.data(), nullptr};
    ::setenv(kPart, part.c_str(), 1);
    ::setenv(kAddress, address.c_str(), 1);
    if (::posix_spawn(&process_, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) process_ = -1;
  }
  ~Child() {
    if (process_ <= 0) return;
    signal(SIGCONT);
    signal(SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void signal(int number) const { ::kill(process_, number); }
  /// Returns when its last thread has stopped: until then it answers.
  void stop() const {
    signal(SIGSTOP);
    ::waitpid(process_, nullptr, WUNTRACED);
  }
  /// Its exit code; -1 where it was killed.
  [[nodiscard]] int await_exit() {
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
};

[[noreturn]] void wait_for_the_end() {
  while (::getppid() != 1) ::poll(nullptr, 0, 1000);
  ::_exit(0);
}

Record& record_of_exit() {
  static Record record;
  return record;
}

/// Not a test: what a Child does.
TEST(Part, DISABLED_IsPlayed) {
  const std::string part = std::getenv(kPart), address = std::getenv(kAddress);
  if (part == "worker") {
    const auto stream = dial(address, end_named("worker 1"), {});
    stream->send(0, head_of("here"), {});
    wait_for_the_end();
  }
  if (part == "server") {
    Server server({address}, end_named("server 1"),
                  [](Stream& stream, const std::string& message) { stream.send(0, head_of(message), {}); });
    wait_for_the_end();
  }
  // Ends with streams and a listener at work that are destroyed with the statics, or not at all.
  static Server server({own_name("exit")});
  static auto stream = dial(server.address(), end_named("worker 1"), record_of_exit().events());
  static Stream* const leaked = dial(server.address(), end_named("worker 2"), {}).release();
  for (Stream* const each : {stream.get(), leaked}) each->send(0, {}, body_of(std::string(kMostBodyBytes, 'x')));
  std::exit(0);
}

/// A child that is a worker of `server`, or a server; and the stream to it with its record.
struct Pair {
  explicit Pair(bool has_server_child, base::Duration silence) {
    EndOptions options = end_named(has_server_child ? "worker 0" : "server 0");
    options.silence = silence;
    const std::string address = own_name("pair");
    if (has_server_child) {
      child = std::make_unique<Child>("server", address);
      dialed = dial(address, options, own.events());
      stream = dialed.get();
      stream->send(0, head_of("here"), {});
      record = &own;
    } else {
      server = std::make_unique<Server>(std::vector<std::string>{address}, options);
      child = std::make_unique<Child>("worker", address);
      stream = &server->stream();
      record = &server->record();
    }
    EXPECT_EQ(record->await_messages(1).at(0), "here");
  }
  Record own;
  std::unique_ptr<Server> server;
  std::unique_ptr<Child> child;
  std::unique_ptr<Stream> dialed;
  Stream* stream = nullptr;
  Record* record = nullptr;
};

class Lost : public testing::TestWithParam<bool> {};

TEST_P(Lost, APeerThatIsKilledIsLostAtOnce) {
  Pair pair(GetParam(), std::chrono::hours(1));
  pair.child->signal(SIGKILL);
  EXPECT_EQ(pair.record->await_failure(), "PeerLost");
  EXPECT_NE(pair.record->await_ending().reason.find(GetParam() ? "server 1" : "worker 1"), std::string::npos);
}

TEST_P(Lost, APeerThatIsStoppedIsLostAfterTheSilence) {
  for (const bool is_sending : {false, true}) {
    Pair pair(GetParam(), 3s);  // less, and a busy machine is taken for a silent one
    pair.child->stop();
    const base::Time stopped = std::chrono::steady_clock::now();
    for (int i = 0; i < 20 && is_sending; ++i) pair.stream->send(0, {}, body_of(std::string(kMostBodyBytes, 'x')));
    EXPECT_EQ(pair.record->await_failure(), "PeerLost") << pair.record->await_ending().reason;
    RecordProperty(is_sending ? "ms_while_sending" : "ms",
                   static_cast<int>((std::chrono::steady_clock::now() - stopped) / 1ms));
  }
}

TEST(Peers, OneThatIsStoppedForLessThanTheSilenceMissesNothing) {
  Pair pair(true, 60s);
  pair.child->stop();
  for (int i = 0; i < 20; ++i) pair.stream->send(0, {}, body_of(std::string(60, 'x')));
  pair.child->signal(SIGCONT);
  EXPECT_EQ(pair.record->await_messages(21).size(), 21U) << "it was lost";
}

INSTANTIATE_TEST_SUITE_P(Being, Lost, testing::Bool(),
                         [](const auto& is_server) { return std::string(is_server.param ? "servers" : "workers"); });

TEST(Exit, WithStreamsAtWorkDoesNotHang) {
  Child child("exit", "");
  EXPECT_EQ(child.await_exit(), 0);
}

TEST(Fork, AChildLeavesItsParentsStreamsAlone) {
  Server server({own_name("fork")});
  Record record;
  auto stream = dial(server.address(), end_named("worker 0"), record.events());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    bool is_refused = false;
    try {
      stream->send(0, head_of("from the child"), {});
    } catch (const Misuse&) {
      is_refused = true;
    }
    stream.reset();
    server.drop(0);
    server.stop();
    ::_exit(is_refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  stream->send(0, head_of("from the parent"), {});
  EXPECT_EQ(server.record().await_messages(1).at(0), "from the parent");
}

}  // namespace
}  // namespace syncopate::server::rpc
