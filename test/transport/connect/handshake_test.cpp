// Handshakes: which ends are accepted, which errors each end gets, and that strangers are only cut off.
#include "transport/connect/handshake.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "transport/ranks.hpp"

namespace syncopate::transport::connect {
namespace {

using State = Handshake::State;
using Cause = Handshake::Cause;

std::pair<socket::Channel, socket::Channel> channels() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {socket::Channel(socket::Descriptor(ends[0])), socket::Channel(socket::Descriptor(ends[1]))};
}

struct Two {
  Handshake caller, answerer;
};

struct Side {
  std::string secret = "a secret of sufficient length";
  std::string version;
  std::uint64_t group = 5;
  int rank = 0;
  bool tls = false;
};

Two meet(const Side& calling, const Side& answering, int called_rank = 0) {
  auto [a, b] = channels();
  const Hello hello{.version = calling.version,
                    .purpose = Purpose::data,
                    .group = calling.group,
                    .from = calling.rank,
                    .to = called_rank,
                    .stream = 2,
                    .tls = calling.tls};
  const Hello reply{
      .version = answering.version, .group = answering.group, .from = answering.rank, .tls = answering.tls};
  Two two{Handshake::call(std::move(a), hello, calling.secret),
          Handshake::answer(std::move(b), reply, answering.secret)};
  const auto over = [](State state) { return state == State::done || state == State::refused; };
  for (int i = 0; i < 10 && !(over(two.caller.state()) && over(two.answerer.state())); ++i) {
    if (!over(two.caller.state())) two.caller.advance();
    if (two.caller.state() == State::refused) std::ignore = two.caller.take();
    if (!over(two.answerer.state())) two.answerer.advance();
    if (two.answerer.state() == State::refused) std::ignore = two.answerer.take();
  }
  return two;
}

TEST(Handshake, BothSidesLearnWhoTheOtherIs) {
  const Two two = meet({.rank = 3}, {.rank = 0});
  ASSERT_EQ(two.caller.state(), State::done) << two.caller.reason();
  ASSERT_EQ(two.answerer.state(), State::done) << two.answerer.reason();
  EXPECT_EQ(two.answerer.peer().from, 3);
  EXPECT_EQ(two.answerer.peer().stream, 2u);
  EXPECT_EQ(two.answerer.peer().purpose, Purpose::data);
  EXPECT_EQ(two.caller.peer().from, 0);
}

TEST(Handshake, WithoutASecretOnBothSidesItSucceeds) {
  EXPECT_EQ(meet({.secret = "", .rank = 1}, {.secret = ""}).answerer.state(), State::done);
}

TEST(Handshake, AWrongSecretIsFoundByBothSides) {
  const Two two = meet({.secret = "another secret, long enough", .rank = 1}, {});
  EXPECT_EQ(two.caller.cause(), Cause::unauthorized);
  EXPECT_EQ(two.answerer.state(), State::refused);
  EXPECT_EQ(meet({.secret = "", .rank = 1}, {}).caller.cause(), Cause::unauthorized);
  EXPECT_NE(meet({.rank = 1}, {.secret = ""}).answerer.state(), State::done);
}

TEST(Handshake, UnderTlsBothSidesMeetOrFindTheWrongSecret) {
  Two two = meet({.rank = 3, .tls = true}, {.rank = 0, .tls = true});
  ASSERT_EQ(two.caller.state(), State::done) << two.caller.reason();
  ASSERT_EQ(two.answerer.state(), State::done) << two.answerer.reason();
  EXPECT_EQ(two.answerer.peer().from, 3);
  socket::Channel caller = two.caller.take(), answerer = two.answerer.take();
  const std::string words = "what comes next";
  std::array<char, 100> raw{};
  ASSERT_EQ(caller.write(std::as_bytes(std::span(words))).bytes, words.size());
  const ssize_t count = ::recv(answerer.number(), raw.data(), raw.size(), MSG_DONTWAIT | MSG_PEEK);
  ASSERT_GT(count, static_cast<ssize_t>(words.size()));
  EXPECT_EQ(std::string_view(raw.data(), static_cast<std::size_t>(count)).find("next"), std::string_view::npos);
  const Two wrong = meet({.secret = "another secret, long enough", .rank = 1, .tls = true}, {.tls = true});
  EXPECT_EQ(wrong.caller.cause(), Cause::unauthorized);
  EXPECT_EQ(wrong.answerer.cause(), Cause::unauthorized);
}

TEST(Handshake, DifferentVersionsNameBothOnBothSides) {
  const Two two = meet({.version = "9.9.9", .rank = 1}, {.version = "0.1.0"});
  for (const Handshake* side : {&two.caller, &two.answerer}) {
    EXPECT_EQ(side->cause(), Cause::version);
    EXPECT_NE(side->reason().find("9.9.9"), std::string::npos) << side->reason();
    EXPECT_NE(side->reason().find("0.1.0"), std::string::npos) << side->reason();
  }
}

TEST(Handshake, AnotherGroupOrRankIsRefused) {
  EXPECT_EQ(meet({.group = 6, .rank = 1}, {}).answerer.state(), State::refused);
  EXPECT_EQ(meet({.rank = 1}, {.rank = 2}).caller.cause(), Cause::stranger) << "called 0, found 2";
}

TEST(Handshake, GarbageIsRefusedAtItsFirstWrongByte) {
  auto [a, b] = channels();
  Handshake answerer = Handshake::answer(std::move(b), {}, "");
  const std::string request = "G";
  ASSERT_EQ(a.write(std::as_bytes(std::span(request))).bytes, 1u);
  EXPECT_EQ(answerer.advance(), State::refused);
  EXPECT_EQ(answerer.cause(), Cause::stranger);
}

TEST(Handshake, RandomBytesNeverPass) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    auto [a, b] = channels();
    Handshake answerer = Handshake::answer(std::move(b), {.group = 5}, "a secret of sufficient length");
    std::vector<std::byte> noise(random() % 400);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    const char magic[] = "SYNCOPTE";
    if (noise.size() > 12 && round % 2 == 0) std::memcpy(noise.data(), magic, 8);
    std::ignore = a.write(base::ConstBytes(noise));
    EXPECT_NE(answerer.advance(), State::done);
    a.close();
    EXPECT_EQ(answerer.advance(), State::refused);
  }
}

TEST(Handshake, ACallAnsweredByItselfIsRefused) {
  auto [a, b] = channels();
  Handshake caller = Handshake::call(std::move(a), {.group = 5, .from = 1, .to = 0}, "");
  caller.advance();
  std::array<std::byte, kHelloBytes> echo;
  ASSERT_EQ(b.read(base::Bytes(echo)).bytes, echo.size());
  ASSERT_EQ(b.write(base::ConstBytes(echo)).bytes, echo.size());
  EXPECT_EQ(caller.advance(), State::refused);
  EXPECT_EQ(caller.cause(), Cause::stranger);
}

TEST(Handshake, AnAnswererTakesNoProofTwice) {
  const std::string secret = "a secret of sufficient length";
  std::array<std::byte, kHelloBytes> hello, answer;
  std::array<std::byte, kProofBytes> proof;
  auto [a, b] = channels();
  Handshake caller = Handshake::call(std::move(a), {.group = 5, .from = 1, .to = 0}, secret);
  caller.advance();
  ASSERT_EQ(b.read(base::Bytes(hello)).bytes, hello.size());
  for (const bool is_first : {true, false}) {
    auto [c, d] = channels();
    Handshake answerer = Handshake::answer(std::move(d), {.group = 5, .from = 0}, secret);
    ASSERT_EQ(c.write(base::ConstBytes(hello)).bytes, hello.size());
    answerer.advance();
    ASSERT_EQ(c.read(base::Bytes(answer)).bytes, answer.size());
    if (is_first) {
      ASSERT_EQ(b.write(base::ConstBytes(answer)).bytes, answer.size());
      caller.advance();
      ASSERT_EQ(b.read(base::Bytes(proof)).bytes, proof.size());
    }
    ASSERT_EQ(c.write(base::ConstBytes(proof)).bytes, proof.size());
    EXPECT_EQ(answerer.advance(), is_first ? State::done : State::refused);
  }
}

TEST(Handshake, RanksThatWereToldOtherThingsAtTheRendezvousDoNotMeet) {
  Digest one{}, other{};
  other[31] = std::byte{1};
  for (const Digest& theirs : {one, other}) {
    auto [a, b] = channels();
    Handshake caller = Handshake::call(std::move(a), {.group = 5, .from = 1, .to = 0}, "a secret, long enough", one);
    Handshake answerer = Handshake::answer(std::move(b), {.group = 5, .from = 0}, "a secret, long enough", theirs);
    for (int i = 0; i < 4; ++i) {
      caller.advance();
      answerer.advance();
    }
    const State expected = theirs == one ? State::done : State::refused;
    EXPECT_EQ(caller.state(), expected);
    EXPECT_EQ(answerer.state(), expected);
  }
}

TEST(Handshake, OneSideAloneWithTlsIsToldSoOnBothSides) {
  for (const bool called_has_it : {true, false}) {
    const Two two = meet({.rank = 1, .tls = !called_has_it}, {.tls = called_has_it});
    for (const Handshake* side : {&two.caller, &two.answerer}) {
      EXPECT_EQ(side->state(), State::refused);
      EXPECT_EQ(side->cause(), Cause::tls);
      EXPECT_NE(side->reason().find("SYNCOPATE_TLS"), std::string::npos) << side->reason();
    }
  }
}

}  // namespace
}  // namespace syncopate::transport::connect
