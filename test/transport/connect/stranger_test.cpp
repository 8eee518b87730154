// Strangers that call: they are not accepted, get no proof, and do not disturb the group.
#include <gtest/gtest.h>

#include "transport/connect/hello.hpp"

namespace syncopate::transport {
namespace {

using test::say;
using namespace std::chrono_literals;
namespace hello = test::hello;

std::string hear_bytes(socket::Channel& channel, std::size_t count) {
  return test::hear(channel, [=](const std::string& heard) { return heard.size() >= count; });
}

/// A stranger that calls rank 0 of two.
class CallingStranger : public testing::Test {
 protected:
  [[nodiscard]] hello::Fields right() const {
    const connect::Digest meeting = pair_.peer->meeting();
    return {.group = pair_.peer->group(), .meeting = {reinterpret_cast<const char*>(meeting.data()), meeting.size()}};
  }
  [[nodiscard]] socket::Channel dial() const { return socket::Channel(pair_.peer->dial(0)); }
  /// The handshake of a caller with the secret. Returns the last bytes that the stranger sent.
  std::string introduce(socket::Channel& channel, const hello::Fields& mine) {
    EXPECT_TRUE(say(channel, hello::first_words(mine)));
    const std::string answer = hear_bytes(channel, hello::kAnswerBytes);
    const std::string last = hello::last_words(mine, answer);
    EXPECT_TRUE(say(channel, last));
    EXPECT_EQ(hear_bytes(channel, hello::kProofBytes), hello::welcome(mine, answer));
    return last;
  }
  [[nodiscard]] std::string frame() const {
    return test::FrameFields{.group = static_cast<std::uint32_t>(pair_.peer->group())}.header() + "8 bytes.";
  }
  /// The frame of operation 5 from rank 1 arrives.
  void expect_frame() {
    std::array<std::byte, 8> into{};
    pair_.endpoint.links->receive(1, {5, 9}, into, 1);
    test::finish(*pair_.endpoint.links, 1);
    EXPECT_EQ(std::memcmp(into.data(), "8 bytes.", 8), 0);
  }
  /// Rank 1 joins as if no stranger had called.
  void expect_undisturbed() {
    EXPECT_FALSE(pair_.endpoint.control->failed());
    socket::Channel data = pair_.peer->connect(0, connect::Purpose::data);
    EXPECT_TRUE(say(data, frame()));
    expect_frame();
  }
  test::Pair pair_;
};

TEST_F(CallingStranger, ThatKnowsTheSecretComesInHoweverSlowlyItSpeaks) {
  socket::Channel channel = dial();
  for (const char letter : hello::first_words(right())) EXPECT_TRUE(say(channel, {&letter, 1}));
  const std::string answer = hear_bytes(channel, hello::kAnswerBytes);
  for (const char letter : hello::last_words(right(), answer) + frame()) EXPECT_TRUE(say(channel, {&letter, 1}));
  expect_frame();
}

// Bytes after the caller's proof do not belong to the handshake: they are left for the owner of the connection.
TEST_F(CallingStranger, MaySendItsFirstFrameWithItsLastWords) {
  socket::Channel channel = dial();
  EXPECT_TRUE(say(channel, hello::first_words(right())));
  const std::string answer = hear_bytes(channel, hello::kAnswerBytes);
  EXPECT_TRUE(say(channel, hello::last_words(right(), answer) + frame()));
  expect_frame();
}

// The answerer sends nothing that was made with the secret to a caller that has not proved it.
TEST_F(CallingStranger, ThatSaysHelloAndWaitsGetsAHelloOnly) {
  socket::Channel channel = dial();
  EXPECT_TRUE(say(channel, hello::first_words(right())));
  const std::string heard = test::hear(channel);  // until it is cut off
  EXPECT_EQ(heard.size(), hello::kHelloBytes);
  EXPECT_TRUE(test::is_cut_off(channel));
  expect_undisturbed();
}

struct Attack {
  const char* name;
  std::function<void(hello::Fields&)> lies;
  std::function<std::string(const hello::Fields&, const std::string&)> last;
  std::size_t hears;          ///< after its hello
  std::string hears_at_last;  ///< before it is cut off; "proof": it has proved the secret, and gets a proof
};

std::string prove(const hello::Fields& mine, const std::string& answer) { return hello::last_words(mine, answer); }
std::string nothing(const hello::Fields& /*mine*/, const std::string& /*answer*/) { return {}; }
void honestly(hello::Fields& /*mine*/) {}

class EveryAttack : public CallingStranger, public testing::WithParamInterface<Attack> {};

TEST_P(EveryAttack, EndsOutside) {
  hello::Fields mine = right();
  GetParam().lies(mine);
  socket::Channel channel = dial();
  std::ignore = say(channel, hello::first_words(mine));
  const std::string answer = hear_bytes(channel, hello::kAnswerBytes);
  EXPECT_EQ(answer.size(), GetParam().hears);
  if (answer.size() == hello::kAnswerBytes) std::ignore = say(channel, GetParam().last(mine, answer));
  const bool is_told = GetParam().hears_at_last == "proof";
  EXPECT_EQ(test::hear(channel), is_told ? hello::welcome(mine, answer) : GetParam().hears_at_last);
  EXPECT_TRUE(test::is_cut_off(channel));
  expect_undisturbed();
}

INSTANTIATE_TEST_SUITE_P(
    Handshake, EveryAttack,
    testing::Values(
        Attack{"OfNoProof", honestly, [](auto&, auto&) { return std::string(hello::kProofBytes, '\0'); },
               hello::kAnswerBytes, hello::kRefusal},
        Attack{"OfAnotherSecret", honestly,
               [](auto& mine, auto& answer) { return hello::last_words(mine, answer, "another secret"); },
               hello::kAnswerBytes, hello::kRefusal},
        Attack{"OfAnAnswerersProof", honestly, [](auto& mine, auto& answer) { return hello::welcome(mine, answer); },
               hello::kAnswerBytes, hello::kRefusal},
        Attack{"OfAnotherMeeting", [](auto& mine) { mine.meeting[5] ^= 1; }, prove, hello::kAnswerBytes,
               hello::kRefusal},
        Attack{"OfAnotherGroup", [](auto& mine) { ++mine.group; }, prove, hello::kAnswerBytes, "proof"},
        Attack{"OfAnotherAddressee", [](auto& mine) { mine.to = 1; }, prove, hello::kAnswerBytes, "proof"},
        Attack{"OfNoAddressee", [](auto& mine) { mine.to = -1; }, prove, hello::kAnswerBytes, "proof"},
        Attack{"OfTls", [](auto& mine) { mine.tls = 1; }, prove, hello::kAnswerBytes, ""},
        Attack{"OfTlsAndNoProof", [](auto& mine) { mine.tls = 1; },
               [](auto&, auto&) { return std::string(hello::kProofBytes, 'x'); }, hello::kAnswerBytes, hello::kRefusal},
        Attack{"OfAnotherProtocol", [](auto& mine) { ++mine.protocol; }, nothing, hello::kHelloBytes, ""},
        Attack{"OfTheLastProtocol", [](auto& mine) { mine.protocol = 0xffff; }, nothing, hello::kHelloBytes, ""},
        Attack{"OfAnotherVersion", [](auto& mine) { mine.version = "9.9.9"; }, nothing, hello::kHelloBytes, ""},
        Attack{"OfAVersionWithoutEnd", [](auto& mine) { mine.version = "\x1b[2J\x1b[31mabcdefg"; }, nothing,
               hello::kHelloBytes, ""},
        Attack{"OfAnAnswerer", [](auto& mine) { mine.role = hello::kAnswerer; }, nothing, 0, ""},
        Attack{"OfAnotherMagic", [](auto& mine) { mine.magic = "SYNCOPTF"; }, nothing, 0, ""},
        Attack{"OfAnotherLanguage", [](auto& mine) { mine.magic = "GET / HT"; }, nothing, 0, ""}),
    [](const auto& one) { return one.param.name; });

// Stream 7 does not exist: the accepted connection is closed, and only its recorded bytes are left.
TEST_F(CallingStranger, ThatRepeatsWhatItHasOverheardStaysOutside) {
  hello::Fields mine = right();
  mine.stream = 7;
  socket::Channel overheard = dial();
  const std::string last = introduce(overheard, mine);
  socket::Channel channel = dial();
  EXPECT_TRUE(say(channel, hello::first_words(mine)));
  EXPECT_EQ(hear_bytes(channel, hello::kAnswerBytes).size(), hello::kAnswerBytes);
  EXPECT_TRUE(say(channel, last));
  EXPECT_EQ(test::hear(channel), hello::kRefusal);
  EXPECT_TRUE(test::is_cut_off(channel));
  expect_undisturbed();
}

TEST_F(CallingStranger, ThatStopsSpeakingIsCutOffInTheEnd) {
  const std::string first = hello::first_words(right());
  std::vector<socket::Channel> silent;
  for (const std::size_t spoken : {std::size_t{0}, std::size_t{1}, std::size_t{8}, first.size() - 1, first.size()}) {
    silent.push_back(dial());
    EXPECT_TRUE(say(silent.back(), first.substr(0, spoken)));
  }
  expect_undisturbed();
  for (socket::Channel& channel : silent) EXPECT_TRUE(test::is_cut_off(channel));
}

}  // namespace
}  // namespace syncopate::transport
