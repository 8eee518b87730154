// Strangers: callers without the secret get only a challenge; members that send malformed messages are cut off.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "service/stranger.hpp"

namespace syncopate::server::rpc {
namespace {

using namespace test;
using grpc::StatusCode;

void expect_honest_workers_get_in(Server& server, std::size_t index) {
  const auto stream = dial(server.address(), end_named("worker 9"), {});
  stream->send(0, head_of("honest"), {});
  EXPECT_EQ(server.record(index).await_messages(1).at(0), "honest");
}

TEST(Strangers, GetAChallengeAndNothingThatWasMadeWithTheSecret) {
  Server server;
  const HelloBytes hello = say_hello({.version = {}, .silence = 1s, .identity = "worker 0", .job = "a job"});
  Stranger stranger(server.address(), {{kHelloKey, text_of(hello)}});
  EXPECT_EQ(stranger.proof(), std::nullopt);
  EXPECT_EQ(stranger.read(), std::nullopt);
  EXPECT_EQ(stranger.finish(), StatusCode::UNAUTHENTICATED);
  const auto challenge = read_hello(hello_in(stranger.challenge()));
  ASSERT_TRUE(challenge.has_value());
  EXPECT_EQ(challenge->identity, "server 0");
  EXPECT_EQ(challenge->job, "") << "the job is not theirs to know";
  EXPECT_EQ(server.accepted(), 0U);
}

TEST(Strangers, WithAWrongProofAreRefusedAndGetNoOther) {
  Server server;
  EndOptions other = end_named("worker 0");
  other.secret = "another secret, long enough";
  const Metadata right = proven_metadata(server.address(), end_named("worker 0"));
  const HelloBytes hello = hello_in(right.find(kHelloKey)->second),
                   challenge = hello_in(right.find(kChallengeKey)->second);
  for (const std::string& proof :
       {std::string(), std::string(32, '\0'), right.find(kProofKey)->second.substr(0, 31),
        right.find(kProofKey)->second + "x", text_of(prove(other.secret, Role::caller, hello, challenge)),
        text_of(prove(end_named("").secret, Role::answerer, hello, challenge)),
        text_of(prove(end_named("").secret, Role::caller, challenge, hello))}) {
    Stranger stranger(server.address(),
                      {{kHelloKey, text_of(hello)}, {kChallengeKey, text_of(challenge)}, {kProofKey, proof}});
    EXPECT_EQ(stranger.proof(), std::nullopt);
    EXPECT_EQ(stranger.finish(), StatusCode::PERMISSION_DENIED) << proof.size();
    EXPECT_EQ(stranger.challenge(), "");
  }
  EXPECT_EQ(server.accepted(), 0U);
}

TEST(Strangers, CannotUseAProofAgainOrForAnotherCallerOrServer) {
  Server server, other;
  Metadata metadata = proven_metadata(server.address(), end_named("worker 0"));
  Stranger first(server.address(), metadata);
  EXPECT_NE(first.proof(), std::nullopt) << "the first to use it";
  Stranger again(server.address(), metadata);
  EXPECT_EQ(again.finish(), StatusCode::UNAUTHENTICATED) << "recorded and sent again";
  Stranger elsewhere(other.address(), metadata);
  EXPECT_EQ(elsewhere.finish(), StatusCode::UNAUTHENTICATED) << "passed on to another server";
  metadata = proven_metadata(server.address(), end_named("worker 0"));
  std::string renamed = metadata.find(kHelloKey)->second;
  renamed[64 + 7] = '1';
  metadata.erase(kHelloKey);
  metadata.emplace(kHelloKey, renamed);
  Stranger stolen(server.address(), metadata);
  EXPECT_EQ(stolen.finish(), StatusCode::UNAUTHENTICATED) << "under another name";
  EXPECT_EQ(server.accepted(), 1U);
  EXPECT_EQ(other.accepted(), 0U);
}

TEST(Strangers, OfAnotherLanguageAreRefused) {
  Server server;
  const std::string hello = text_of(say_hello({.version = {}, .silence = 1s, .identity = "worker 0", .job = "a job"}));
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{kHelloKey, "hello"}}, Metadata{{kHelloKey, std::string(kHelloBytes, 'x')}},
        Metadata{{kHelloKey, hello + "x"}}}) {
    Stranger stranger(server.address(), metadata);
    EXPECT_EQ(stranger.finish(), StatusCode::INVALID_ARGUMENT);
  }
  Stranger lost(server.address(), {{kHelloKey, hello}}, "/another.service/method");
  EXPECT_EQ(lost.finish(), StatusCode::UNIMPLEMENTED);
  expect_honest_workers_get_in(server, 0);
}

/// Only the window of flow control is kept: gRPC takes no more from a caller that is not read.
TEST(Strangers, AreNotRead) {
  Server server;
  const HelloBytes hello = say_hello({.version = {}, .silence = 1s, .identity = "worker 0", .job = "a job"});
  Stranger stranger(server.address(), {{kHelloKey, text_of(hello)}});
  std::size_t written = 0;
  while (written < 64 && stranger.write(std::string(kMostBodyBytes, 'x'))) ++written;
  EXPECT_LT(written, 4U);
  expect_honest_workers_get_in(server, 0);
}

TEST(Strangers, ManyAtATimeDoNotKeepWorkersOut) {
  Server server;
  std::atomic<bool> stops{false};
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 4; ++i)
    crowd.emplace_back([&] {
      const HelloBytes hello = say_hello({.version = {}, .silence = 1s, .identity = "worker 0", .job = "a job"});
      while (!stops) {
        Stranger stranger(server.address(), {{kHelloKey, text_of(hello)}});
        std::ignore = stranger.finish();
      }
    });
  for (std::size_t i = 0; i < 10; ++i) expect_honest_workers_get_in(server, i);
  stops = true;
}

/// A member that has proved the secret, and then sends malformed bytes.
class Garbage : public testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(Garbage, CutsAMemberOffByName) {
  Server server;
  Stranger member(server.address(), proven_metadata(server.address(), end_named("worker 0")));
  ASSERT_NE(member.proof(), std::nullopt);
  EXPECT_TRUE(member.write(std::string("\1good", 5)));
  EXPECT_EQ(server.record().await_messages(1).at(0), "good");
  member.write(GetParam().second);
  EXPECT_EQ(server.record().await_failure(), "Corrupt") << server.record().await_ending().reason;
  EXPECT_NE(server.record().await_ending().reason.find("worker 0 (ipv4:127.0.0.1:"), std::string::npos);
  EXPECT_EQ(server.record().messages(), 1U);
  EXPECT_EQ(server.record().endings(), 1U);
  expect_honest_workers_get_in(server, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Garbage,
    testing::Values(std::pair("nothing", std::string()), std::pair("zero", std::string(1, '\0')),
                    std::pair("another_kind", std::string("\4text")), std::pair("no_bytes", std::string("\1")),
                    std::pair("a_heartbeat_with_text", std::string("\3text")),
                    std::pair("a_byte_too_much", "\1" + std::string(kMostHeadBytes + kMostBodyBytes + 1, 'x')),
                    std::pair("more_than_grpc_takes_by_itself", std::string(std::size_t{5} << 20, '\1'))),
    [](const auto& sent) { return sent.param.first; });

TEST(Members, WhoLeaveWithoutAWordOrSayNothingAreLost) {
  EndOptions impatient = end_named("server 0");
  impatient.silence = 1s;
  Server server({"127.0.0.1:0"}, impatient);
  {
    Stranger leaver(server.address(), proven_metadata(server.address(), end_named("worker 0")));
    ASSERT_NE(leaver.proof(), std::nullopt);
    leaver.end_writes();
    EXPECT_EQ(server.record(0).await_failure(), "PeerLost");
  }
  Stranger silent(server.address(), proven_metadata(server.address(), end_named("worker 1")));
  ASSERT_NE(silent.proof(), std::nullopt);
  EXPECT_EQ(server.record(1).await_failure(), "PeerLost");
  EXPECT_NE(server.record(1).await_ending().reason.find("silent for 1000 ms"), std::string::npos);
}

std::size_t most_resident_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) >> 10;
}

TEST(Members, WhoSendMoreThanFitsAreCutOffBeforeItFillsTheMemory) {
  Server server;
  const std::size_t before = most_resident_mib();
  Stranger member(server.address(), proven_metadata(server.address(), end_named("worker 0")));
  ASSERT_NE(member.proof(), std::nullopt);
  EXPECT_FALSE(member.write_repeated(std::string(1 << 20, '\1'), 3000));
  EXPECT_EQ(server.record().await_failure(), "PeerLost");
  EXPECT_LT(most_resident_mib() - before, 1000U);
  expect_honest_workers_get_in(server, 1);
}

TEST(Members, AFarewellOfBytesIsShownAsText) {
  Server server;
  Stranger member(server.address(), proven_metadata(server.address(), end_named("worker 0")));
  ASSERT_NE(member.proof(), std::nullopt);
  member.write("\2\x1b[31mred\n" + std::string(100'000, 'x'));
  EXPECT_EQ(server.record().await_failure(), "RemoteFailure");
  const std::string reason = server.record().await_ending().reason;
  EXPECT_NE(reason.find("?[31mred?xxx"), std::string::npos);
  EXPECT_LT(reason.size(), 1200U);
}

TEST(Members, AnotherVersionIsNamedAtBothEnds) {
  Server server;
  EndOptions options = end_named("worker 0");
  const HelloBytes hello =
      say_hello({.protocol = 9, .version = "9.9", .silence = 1s, .identity = "worker 0", .job = "a job"});
  Stranger first(server.address(), {{kHelloKey, text_of(hello)}});
  ASSERT_EQ(first.finish(), StatusCode::UNAUTHENTICATED);
  const HelloBytes challenge = hello_in(first.challenge());
  Stranger second(server.address(), {{kHelloKey, text_of(hello)},
                                     {kChallengeKey, text_of(challenge)},
                                     {kProofKey, text_of(prove(options.secret, Role::caller, hello, challenge))}});
  EXPECT_EQ(second.proof(), std::nullopt);
  EXPECT_EQ(second.finish(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(server.accepted(), 0U);
}

}  // namespace
}  // namespace syncopate::server::rpc
