// Processes: a killed peer is lost at once, a stopped one after the silence; exits and forks do not hang.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "service/child.hpp"
#include "service/ends.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;
using syncopate::test::Child;
using syncopate::test::wait_for_the_end;

constexpr char kPart[] = "SYNCOPATE_TEST_PART", kAddress[] = "SYNCOPATE_TEST_ADDRESS";

std::string own_name(const char* purpose) {
  return std::string("@syncopate-") + purpose + "-" + std::to_string(::getpid());
}

Child played(const std::string& part, const std::string& address) {
  return {"Part.DISABLED_IsPlayed", {{kPart, part}, {kAddress, address}}};
}

Record& record_of_exit() {
  static Record record;
  return record;
}

/// Not a test: the body of a Child.
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
  // Exits with active streams and a listener that are destroyed with the statics, or not at all.
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
      child = std::make_unique<Child>(played("server", address));
      dialed = dial(address, options, own.events());
      stream = dialed.get();
      stream->send(0, head_of("here"), {});
      record = &own;
    } else {
      server = std::make_unique<Server>(std::vector<std::string>{address}, options);
      child = std::make_unique<Child>(played("worker", address));
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
    Pair pair(GetParam(), 3s);  // with less, a busy machine would be taken for a silent one
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
  // OpenSSL may have ended before the streams' threads: AddressSanitizer takes what it held for them for a leak.
  ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  Child child = played("exit", "");
  ::unsetenv("ASAN_OPTIONS");
  EXPECT_EQ(child.await_exit(), 0);
}

TEST(Fork, AChildLeavesItsParentsStreamsAlone) {
  Server server({own_name("fork")});
  Record record;
  auto stream = dial(server.address(), end_named("worker 0"), record.events());
  static_cast<void>(server.stream());  // the child has what the server accepted before the fork
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
}  // namespace syncopate::server::streams
