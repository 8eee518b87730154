// Strangers in a handshake, as callers and as answerers: they stay outside and disturb nobody.
// nobody.
#include <gtest/gtest.h>

#include "transport/connect/acceptor.hpp"
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
  /// The handshake of who knows the secret; what the stranger said last.
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
  /// Rank 1 comes in as if nobody else had called.
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

// What comes with the last words is none of the handshake's: it is left for whoever gets the connection.
TEST_F(CallingStranger, MaySendItsFirstFrameWithItsLastWords) {
  socket::Channel channel = dial();
  EXPECT_TRUE(say(channel, hello::first_words(right())));
  const std::string answer = hear_bytes(channel, hello::kAnswerBytes);
  EXPECT_TRUE(say(channel, hello::last_words(right(), answer) + frame()));
  expect_frame();
}

// The answerer gives nothing that was made with the secret to who has not shown that it knows it.
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
  std::size_t hears;          ///< to its first words
  std::string hears_at_last;  ///< before it is cut off; "proof": it has proved the secret, and gets one in return
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

// For stream 7 there is no place: the connection that was introduced is closed, and its words are all that stays.
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

/// Rank 1 of group 5 calls an address at which a stranger listens instead of rank 0.
class AnsweringStranger : public testing::Test {
 protected:
  AnsweringStranger() { acceptor_.call(socket::local_address(listener_), {}, {.group = 5, .from = 1, .to = 0}); }
  void work() {
    for (const socket::Ready& ready : poller_.wait(test::in(10ms))) acceptor_.on_ready(ready);
  }
  /// The next so many bytes that the rank says.
  std::string next_words(std::size_t count) {
    std::string heard;
    for (const base::Time end = test::in(10s); heard.size() < count && std::chrono::steady_clock::now() < end;) {
      work();
      std::vector<char> piece(count - heard.size());
      heard.append(piece.data(), stranger_.read(std::as_writable_bytes(std::span(piece))).bytes);
    }
    return heard;
  }
  /// What the rank says first to whoever answers.
  std::string first_words() {
    test::await_readable(listener_);
    stranger_ = socket::Channel(socket::accept_from(listener_));
    return next_words(hello::kHelloBytes);
  }
  /// Says the hello of `mine`, and hears the rank's proof, to its first words.
  void answer(const std::string& first, const hello::Fields& mine) {
    EXPECT_TRUE(say(stranger_, hello::answer_by(mine)));
    EXPECT_EQ(next_words(hello::kProofBytes),
              hello::code(hello::kCaller, mine.meeting, first + hello::answer_by(mine), kSecret));
  }
  /// How the call ended once the stranger has said this.
  connect::Refusal refusal_after(const std::string& words) {
    EXPECT_TRUE(say(stranger_, words));
    for (const base::Time end = test::in(10s); std::chrono::steady_clock::now() < end;) {
      work();
      EXPECT_TRUE(acceptor_.connections().empty());
      if (auto refusals = acceptor_.refusals(); !refusals.empty()) return refusals.front();
    }
    return {};
  }
  [[nodiscard]] static hello::Fields right() { return {.group = 5, .from = 0, .to = 1}; }

  static constexpr auto kSecret = "a secret of sufficient length";
  socket::Poller poller_;
  connect::Acceptor acceptor_{poller_, {.rank = 1, .group = 5, .secret = kSecret, .log = {LogLevel::off, {}}}};
  socket::Descriptor listener_ = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  socket::Channel stranger_;
};

TEST_F(AnsweringStranger, ThatKnowsTheSecretIsConnectedWhenItSaysSo) {
  const std::string first = first_words();
  answer(first, right());
  for (int i = 0; i < 10; ++i) work();
  EXPECT_TRUE(acceptor_.busy()) << "its word is missing";
  EXPECT_TRUE(acceptor_.connections().empty());
  EXPECT_TRUE(say(stranger_, hello::welcome_by(right(), first, kSecret)));
  std::vector<connect::Connection> made;
  for (const base::Time end = test::in(10s); made.empty() && std::chrono::steady_clock::now() < end; work())
    made = acceptor_.connections();
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].hello.from, 0);
  EXPECT_TRUE(made[0].called);
}

TEST_F(AnsweringStranger, WithoutTheSecretIsUnauthorized) {
  const std::string first = first_words();
  answer(first, right());
  EXPECT_EQ(refusal_after(hello::welcome_by(right(), first, "another secret")).cause,
            connect::Handshake::Cause::unauthorized);
}

TEST_F(AnsweringStranger, ThatGivesTheProofBackIsUnauthorized) {
  const std::string first = first_words();
  EXPECT_TRUE(say(stranger_, hello::answer_by(right())));
  EXPECT_EQ(refusal_after(next_words(hello::kProofBytes)).cause, connect::Handshake::Cause::unauthorized);
}

TEST_F(AnsweringStranger, ThatRefusesIsUnauthorized) {
  const std::string first = first_words();
  answer(first, right());
  EXPECT_EQ(refusal_after(hello::kRefusal).cause, connect::Handshake::Cause::unauthorized);
}

TEST_F(AnsweringStranger, ThatEchoesIsNobody) {
  EXPECT_EQ(refusal_after(first_words()).cause, connect::Handshake::Cause::stranger);
}

TEST_F(AnsweringStranger, ThatIsAnotherRankIsNobody) {
  hello::Fields other = right();
  other.from = 2;
  const std::string first = first_words();
  answer(first, other);
  EXPECT_EQ(refusal_after(hello::welcome_by(other, first, kSecret)).cause, connect::Handshake::Cause::stranger);
}

TEST_F(AnsweringStranger, WithTlsIsNamed) {
  hello::Fields other = right();
  other.tls = 1;
  std::ignore = first_words();
  const connect::Refusal refusal = refusal_after(hello::answer_by(other));
  EXPECT_EQ(refusal.cause, connect::Handshake::Cause::tls);
  EXPECT_TRUE(test::contains(refusal.reason, "it has TLS on, this rank has it off")) << refusal.reason;
}

TEST_F(AnsweringStranger, OfAnotherVersionIsNamed) {
  hello::Fields other = right();
  other.version = "9.9.9";
  std::ignore = first_words();
  const connect::Refusal refusal = refusal_after(hello::answer_by(other));
  EXPECT_EQ(refusal.cause, connect::Handshake::Cause::version);
  EXPECT_TRUE(test::contains(refusal.reason, "9.9.9")) << refusal.reason;
}

TEST_F(AnsweringStranger, ThatSpeaksAnotherLanguageIsNobody) {
  std::ignore = first_words();
  EXPECT_EQ(refusal_after("HTTP/1.1 400 Bad Request\r\n\r\n").cause, connect::Handshake::Cause::stranger);
}

TEST_F(AnsweringStranger, ThatSaysNothingIsUnreachableWhenPatienceEnds) {
  std::ignore = first_words();
  acceptor_.expire(test::in(1h));
  const auto refusals = acceptor_.refusals();
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].cause, connect::Handshake::Cause::unreachable);
  EXPECT_TRUE(test::is_cut_off(stranger_));
}

TEST_F(AnsweringStranger, ThatClosesIsCalledAgain) {
  const std::string first = first_words();
  answer(first, right());
  stranger_.close();  // before its proof: it had no room
  bool called_again = false;
  for (const base::Time end = test::in(10s); !called_again && std::chrono::steady_clock::now() < end;) {
    work();
    acceptor_.expire(std::chrono::steady_clock::now());
    called_again = static_cast<bool>(socket::accept_from(listener_));
  }
  EXPECT_TRUE(called_again);
  EXPECT_TRUE(acceptor_.refusals().empty());
}

}  // namespace
}  // namespace syncopate::transport
