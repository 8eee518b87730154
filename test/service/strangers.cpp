// Strangers: callers without the secret get no stream; members that send malformed frames are cut off by name.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "service/raw_end.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;
using connect::Purpose;
using Cause = connect::Handshake::Cause;

void expect_honest_workers_get_in(Server& server, std::size_t index) {
  const auto stream = dial(server.address(), end_named("worker 9"), {});
  stream->send(0, head_of("honest"), {});
  EXPECT_EQ(server.record(index).await_messages(1).at(0), "honest");
}

connect::Hello hello_of(Purpose purpose, const std::string& job = "a job", int from = 0, int to = connect::kAnyone) {
  return {.version = {}, .purpose = purpose, .group = number_of_job(job), .from = from, .to = to};
}

TEST(Strangers, WithoutTheSecretGetNoStreamAndNoProof) {
  Server server;
  for (const char* secret : {"", "another secret, long enough"}) {
    const RawEnd stranger = RawEnd::calling(server.address(), hello_of(Purpose::worker), secret);
    EXPECT_EQ(stranger.cause(), Cause::unauthorized);
  }
  EXPECT_EQ(server.accepted(), 0U);
  expect_honest_workers_get_in(server, 0);
}

TEST(Strangers, OfAnotherJobOrLookingForAnotherServerGetNoStream) {
  Server server;
  const std::string secret = end_named("worker 0").secret;
  EXPECT_EQ(RawEnd::calling(server.address(), hello_of(Purpose::worker, "another job"), secret).cause(),
            Cause::stranger);
  const RawEnd misled = RawEnd::calling(server.address(), hello_of(Purpose::worker, "a job", 0, 3), secret);
  EXPECT_EQ(misled.cause(), Cause::stranger);
  EXPECT_EQ(misled.reason(), "it is server 0, not server 3");
  EXPECT_EQ(server.accepted(), 0U);
}

/// The secret is also that of the ranks, whose connections have other purposes.
TEST(Strangers, RanksOfAGroupGetNoStream) {
  Server server;
  for (const int to : {connect::kAnyone, 0}) {  // 0: this server's own number
    RawEnd rank =
        RawEnd::calling(server.address(), hello_of(Purpose::data, "a job", 0, to), end_named("worker 0").secret);
    EXPECT_EQ(rank.read_all(), "");
  }
  EXPECT_EQ(server.accepted(), 0U);
  expect_honest_workers_get_in(server, 0);
}

TEST(Strangers, ManyAtATimeDoNotKeepWorkersOut) {
  Server server;
  std::atomic<bool> stops{false};
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 4; ++i)
    crowd.emplace_back([&] {
      while (!stops) std::ignore = RawEnd::calling(server.address(), hello_of(Purpose::worker), "");
    });
  for (std::size_t i = 0; i < 10; ++i) expect_honest_workers_get_in(server, i);
  stops = true;
}

/// A member that has proved the secret, and then sends malformed bytes.
class Garbage : public testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(Garbage, CutsAMemberOffByName) {
  EndOptions options = end_named("server 0");
  options.silence = 500ms;  // the member does not answer a close frame
  Server server({"127.0.0.1:0"}, options);
  RawEnd member = RawEnd::member(server.address());
  member.write(settings() + frame_of(FrameKind::message, "good"));
  EXPECT_EQ(server.record().await_messages(1).at(0), "good");
  member.write(GetParam().second);
  EXPECT_EQ(server.record().await_failure(), "Corrupt") << server.record().await_ending().reason;
  EXPECT_NE(server.record().await_ending().reason.find("worker 0 (127.0.0.1:"), std::string::npos);
  EXPECT_EQ(server.record().messages(), 1U);
  EXPECT_EQ(server.record().endings(), 1U);
  EXPECT_NE(member.read_all().find("sent a"), std::string::npos) << "the member receives the reason";
  expect_honest_workers_get_in(server, 1);
}

std::string header(std::uint32_t bytes, int kind, char reserved = 0) {
  std::string text(kFrameHeaderBytes, '\0');
  std::memcpy(text.data(), &bytes, sizeof bytes);
  text[4] = static_cast<char>(kind);
  text[6] = reserved;
  return text;
}

INSTANTIATE_TEST_SUITE_P(Of, Garbage,
                         testing::Values(std::pair("no_kind", header(1, 0) + "x"),
                                         std::pair("another_kind", header(1, 5) + "x"),
                                         std::pair("a_message_without_bytes", header(0, 2)),
                                         std::pair("a_heartbeat_with_text", header(4, 3) + "text"),
                                         std::pair("a_byte_too_much", header(kMostHeadBytes + kMostBodyBytes + 1, 2)),
                                         std::pair("four_gigabytes", header(0xffffffff, 2)),
                                         std::pair("a_long_close", header(kMostTextBytes + 1, 4)),
                                         std::pair("reserved_bytes", header(1, 2, 1) + "x"),
                                         std::pair("settings_twice", settings())),
                         [](const auto& sent) { return sent.param.first; });

TEST(Members, ThatDoNotBeginWithTheirSettingsAreCutOff) {
  for (const std::string& first : {frame_of(FrameKind::message, "early"), settings(99)}) {
    EndOptions options = end_named("server 0");
    options.silence = 500ms;
    Server server({"127.0.0.1:0"}, options);
    RawEnd member = RawEnd::member(server.address());
    member.write(first);
    EXPECT_EQ(server.record().await_failure(), "Corrupt") << server.record().await_ending().reason;
    EXPECT_EQ(server.record().messages(), 0U);
  }
}

TEST(Members, ThatLeaveWithoutACloseFrameOrFallSilentAreLost) {
  EndOptions impatient = end_named("server 0");
  impatient.silence = 1s;
  Server server({"127.0.0.1:0"}, impatient);
  {
    RawEnd leaver = RawEnd::member(server.address());
    leaver.write(settings());
  }
  EXPECT_EQ(server.record(0).await_failure(), "PeerLost");
  RawEnd silent = RawEnd::member(server.address(), 1);
  silent.write(settings());
  EXPECT_EQ(server.record(1).await_failure(), "PeerLost");
  EXPECT_NE(server.record(1).await_ending().reason.find("silent for 1000 ms"), std::string::npos);
}

/// A member that sends a message slowly, in pieces that the kernel does not announce, is not silent.
TEST(Members, ThatSendSlowlyAreNotLost) {
  EndOptions impatient = end_named("server 0");
  impatient.silence = 2s;
  Server server({"127.0.0.1:0"}, impatient);
  RawEnd member = RawEnd::member(server.address());
  const std::string message = frame_of(FrameKind::message, std::string(1000, 'x'));
  member.write(settings(2000) + message.substr(0, 10));
  for (std::size_t at = 10; at < message.size(); at += 40) {
    ::poll(nullptr, 0, 100);  // the member's pace: 25 pauses, together longer than the silence
    member.write(message.substr(at, 40));
  }
  EXPECT_EQ(server.record().await_messages(1).size(), 1U);
}

/// A member whose messages are not read keeps them on its own side, except those in the kernels.
TEST(Members, ThatSendMoreThanIsReadFillNoMemory) {
  base::Guarded<bool> is_open{false};
  Server server({"127.0.0.1:0"}, end_named("server 0"), [&](Stream&, const std::string&) {
    is_open.wait_until(
        at_last(), [](bool open) { return open; }, [](bool) {});
  });
  RawEnd member = RawEnd::member(server.address());
  std::size_t written = member.write(settings());
  const std::string message = frame_of(FrameKind::message, std::string(kMostBodyBytes, 'x'));
  for (std::size_t last = 1; last > 0 && written < std::size_t{256} << 20; written += last)
    last = member.write(message);
  EXPECT_LT(written, std::size_t{64} << 20);
  is_open.change([](bool& open) { open = true; });
}

TEST(Members, ACloseFrameOfBytesIsShownAsText) {
  Server server;
  RawEnd member = RawEnd::member(server.address());
  member.write(settings() + frame_of(FrameKind::close, "\x1b[31mred\n" + std::string(kMostTextBytes - 9, 'x')));
  EXPECT_EQ(server.record().await_failure(), "RemoteFailure");
  EXPECT_NE(server.record().await_ending().reason.find("?[31mred?xxx"), std::string::npos);
}

}  // namespace
}  // namespace syncopate::server::streams
