// Strangers that answer in a rank's place: no call accepts one that has not proved the secret.
#include <gtest/gtest.h>

#include "transport/connect/acceptor.hpp"
#include "transport/connect/hello.hpp"

namespace syncopate::transport {
namespace {

using test::say;
using namespace std::chrono_literals;
namespace hello = test::hello;

/// Rank 1 of group 5 calls an address at which a stranger listens instead of rank 0.
class AnsweringStranger : public testing::Test {
 protected:
  AnsweringStranger() { acceptor_.call(socket::local_address(listener_), {}, {.group = 5, .from = 1, .to = 0}); }
  void work() {
    for (const socket::Ready& ready : poller_.wait(test::in(10ms))) acceptor_.on_ready(ready);
  }
  /// The next `count` bytes that the rank sends.
  std::string next_words(std::size_t count) {
    std::string heard;
    for (const base::Time end = test::in(10s); heard.size() < count && std::chrono::steady_clock::now() < end;) {
      work();
      std::vector<char> piece(count - heard.size());
      heard.append(piece.data(), stranger_.read(std::as_writable_bytes(std::span(piece))).bytes);
    }
    return heard;
  }
  /// The rank's hello, sent before the other end has proved itself.
  std::string first_words() {
    test::await_readable(listener_);
    stranger_ = socket::Channel(socket::accept_from(listener_));
    return next_words(hello::kHelloBytes);
  }
  /// Answers the rank's hello `first` with the hello of `mine`, and reads the rank's proof.
  void answer(const std::string& first, const hello::Fields& mine) {
    EXPECT_TRUE(say(stranger_, hello::answer_by(mine)));
    EXPECT_EQ(next_words(hello::kProofBytes),
              hello::code(hello::kCaller, mine.meeting, first + hello::answer_by(mine), kSecret));
  }
  /// The result of the call after the stranger has sent these bytes.
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
  EXPECT_TRUE(acceptor_.busy()) << "its proof is missing";
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
  EXPECT_TRUE(test::contains(refusal.reason, "it has TLS on, this end has it off")) << refusal.reason;
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
