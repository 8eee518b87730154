// A neighbour in the control tree that sends arbitrary messages fails its group by name, or changes nothing.
#include "transport/stranger.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

namespace syncopate::transport {
namespace {

using test::contains;
using test::failure_seen;
using test::say;
using test::Written;
using namespace std::chrono_literals;
namespace control = test::control;

constexpr auto kHuge = std::uint32_t{0xffffffff};

struct Nonsense {
  const char* name;
  std::string bytes;
};

/// Rank 0 of two, whose neighbour is scripted byte by byte.
class ControlStranger : public testing::Test {
 protected:
  /// Rank 0's failure after these bytes and the end of the connection; nothing earlier may cause it.
  membership::Failure after(const std::string& bytes) {
    EXPECT_TRUE(say(pair_.control, bytes));
    std::ignore = say(pair_.control, control::failure(ErrorKind::remote_failure, "the end"));
    return failure_seen(*pair_.endpoint.links);
  }
  test::Pair pair_;
};

class Malformed : public ControlStranger, public testing::WithParamInterface<Nonsense> {};

TEST_P(Malformed, MessageIsCorruptAndNamesItsSender) {
  const membership::Failure failure = after(test::message(Written().raw(GetParam().bytes)));
  EXPECT_EQ(failure.kind, ErrorKind::corrupt) << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
}

std::string of_kind(std::uint8_t kind) { return Written().number(kind).bytes; }

INSTANTIATE_TEST_SUITE_P(
    Control, Malformed,
    testing::Values(
        Nonsense{"Empty", ""}, Nonsense{"UnknownKind", of_kind(6)}, Nonsense{"LastKind", of_kind(255)},
        Nonsense{"HeartbeatWithoutBody", of_kind(0)},
        Nonsense{"HeartbeatCutOff", control::heartbeat(1, 1, "barrier").substr(4, 30)},
        Nonsense{"TextWithoutEnd", Written().raw(of_kind(0)).number(1).number(std::uint64_t{1}).number(kHuge).bytes},
        Nonsense{"TextBeyondItsLimit", control::heartbeat(1, 1, std::string(201, 'x')).substr(4)},
        Nonsense{"FailureOfAnUnknownKind", control::failure(ErrorKind{std::size(kErrorKinds)}, "").substr(4)},
        Nonsense{"FailureOfTheLastKind", control::failure(ErrorKind{255}, "").substr(4)},
        Nonsense{"GoodbyeCutOff", control::goodbye(1, 1).substr(4, 9)},
        Nonsense{"GoodbyeWithMore", control::goodbye(1, 1).substr(4) + "x"},
        Nonsense{"QuestionWithMore", control::question(1, 0, 1).substr(4) + "x"},
        Nonsense{"RegroupedWithMore", control::regrouped().substr(4) + "x"},
        Nonsense{"ReplyWithoutProgress", control::reply(1, 0, 1, "").substr(4, 21)}),
    [](const auto& one) { return one.param.name; });

TEST_F(ControlStranger, ThatAnnouncesALongMessageIsCutOffBeforeItIsRead) {
  for (const std::uint32_t length : {8193U, kHuge}) {
    test::Pair pair;
    EXPECT_TRUE(say(pair.control, Written().number(length).bytes));
    const membership::Failure failure = failure_seen(*pair.endpoint.links);
    EXPECT_EQ(failure.kind, ErrorKind::peer_lost);
    EXPECT_TRUE(contains(failure.message, std::to_string(length) + " bytes")) << failure.message;
    EXPECT_TRUE(test::is_cut_off(pair.control));
  }
}

class Lie : public ControlStranger, public testing::WithParamInterface<Nonsense> {};

TEST_P(Lie, ChangesNothing) {
  const membership::Failure failure = after(GetParam().bytes);
  EXPECT_EQ(failure.kind, ErrorKind::remote_failure) << failure.message;
  EXPECT_EQ(failure.message, "the end");
}

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
constexpr auto kLast = ~std::uint64_t{0};

INSTANTIATE_TEST_SUITE_P(
    Control, Lie,
    testing::Values(Nonsense{"ReplyWithoutAQuestion", control::reply(1, 0, 7, "allreduce f32 x 9 sum")},
                    Nonsense{"ReplyOfNobody", control::reply(-1, 0, 0, "")},
                    Nonsense{"ReplyToNobody", control::reply(1, kLowest, 1, "barrier")},
                    Nonsense{"QuestionToNobody", control::question(1, 99, 1)},
                    Nonsense{"QuestionOfNobody", control::question(kLowest, 0, kLast)},
                    Nonsense{"GoodbyeOfNobody",
                             control::goodbye(-1, 1) + control::goodbye(2, 1) + control::goodbye(kLowest, 1)},
                    Nonsense{"GoodbyeOfTheOneWhoHearsIt", control::goodbye(0, 1)},
                    Nonsense{"RegroupedThoughNobodyLeft", control::regrouped()},
                    Nonsense{"HeartbeatOfAnother", control::heartbeat(0, 3, "barrier")},
                    Nonsense{"HeartbeatFromTheEndOfTime", control::heartbeat(kLowest, kLast, "barrier", kLast)}),
    [](const auto& one) { return one.param.name; });

TEST_F(ControlStranger, ThatReportsAFailureOfOneRankOnlyEndsTheGroupByARemoteFailure) {
  EXPECT_EQ(after(control::failure(ErrorKind::unauthorized, "no reason")).message, "no reason");
  EXPECT_THROW(std::ignore = pair_.endpoint.links->poll(test::in(1s), {}), RemoteFailure);
}

TEST_F(ControlStranger, ThatSpeaksByteByByteIsUnderstood) {
  for (const char letter : control::question(1, 0, 1)) EXPECT_TRUE(say(pair_.control, {&letter, 1}));
  const std::string start = Written().number(std::uint8_t{4}).number(0).number(1).number(std::uint64_t{1}).bytes;
  const auto answered = [&](const std::string& heard) { return contains(heard, start); };
  EXPECT_TRUE(answered(test::hear(pair_.control, answered)));
}

/// Rank 0 of three; both its neighbours are scripted.
class BetweenTwo : public testing::Test {
 protected:
  BetweenTwo() {
    const auto board = connect::rendezvous::make_board();
    const std::jthread joining([&] {
      GroupOptions options = test::quiet_options();
      options.rank = 0;
      options.size = 3;
      options.silence = 60s;  // scripted peers may send no heartbeat for a long time
      const auto meeting = connect::rendezvous::in_memory(board);
      endpoint_ = join(options, *meeting);
    });
    const auto come = [&](int rank, socket::Channel& edge) {
      edge = test::ScriptedPeer(board, rank, 3).connect(0, connect::Purpose::control);
    };
    const std::jthread other([&] { come(2, honest_); });
    come(1, stranger_);
  }
  ~BetweenTwo() override {
    stranger_.close();
    honest_.close();
  }
  socket::Channel stranger_, honest_;
  Endpoint endpoint_;
};

// It writes as fast as the rank reads, so the rank never finds the connection empty.
TEST_F(BetweenTwo, WhoSpeaksWithoutAPauseKeepsNobodyFromHearingTheOther) {
  std::string flood;
  while (flood.size() < (1 << 20)) flood += control::heartbeat(1, 1, "barrier");
  const std::jthread speaking([&] {
    while (say(stranger_, flood)) {
    }
  });
  const base::Time end = test::in(30s);
  while (endpoint_.control->laggards(2).empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(say(honest_, control::failure(ErrorKind::remote_failure, "the disk is full")));
  EXPECT_EQ(failure_seen(*endpoint_.links).message, "the disk is full");
  endpoint_ = Endpoint{};  // cuts the speaker off
}

/// Asks `to` about one operation after another until it is cut off, or has asked a million times.
void ask_without_end(socket::Channel& edge, std::int32_t to) {
  for (std::uint64_t number = 1; number < 1'000'000; number += 1000) {
    std::string questions;
    for (std::uint64_t i = 0; i < 1000; ++i) questions += control::question(1, to, number + i);
    if (!say(edge, questions)) return;
  }
  std::ignore = say(edge, control::failure(ErrorKind::remote_failure, "the end"));
}

// Unread answers must not fill the memory of the answering rank.
TEST_F(BetweenTwo, WhoAsksAndDoesNotReadTheAnswersIsLost) {
  const std::jthread asking([&] { ask_without_end(stranger_, 0); });
  const auto told = [](const std::string& heard) { return contains(heard, "rank 1 does not read"); };
  EXPECT_TRUE(told(test::hear(honest_, told)));
  const membership::Failure failure = failure_seen(*endpoint_.links);
  EXPECT_EQ(failure.kind, ErrorKind::peer_lost) << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
  endpoint_ = Endpoint{};
}

// Relayed messages are recorded, so that they do not circulate.
TEST_F(BetweenTwo, WhoAsksOthersWithoutAnEndIsCorrupt) {
  const std::jthread asking([&] { ask_without_end(stranger_, 2); });
  const auto told = [](const std::string& heard) { return contains(heard, "relayed control messages"); };
  EXPECT_TRUE(told(test::hear(honest_, told)));
  const membership::Failure failure = failure_seen(*endpoint_.links);
  EXPECT_EQ(failure.kind, ErrorKind::corrupt) << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
  endpoint_ = Endpoint{};
}

// Rank 2 has not left. Rank 0 closes its edge as to a departed rank, and ranks that need rank 2 learn that it is lost.
TEST_F(BetweenTwo, WhoSendsAnotherAwayIsBelievedByTheRestOfTheGroup) {
  EXPECT_TRUE(say(stranger_, control::goodbye(2, 0)));
  const auto parts = [](const std::string& heard) { return contains(heard, control::regrouped()); };
  EXPECT_TRUE(parts(test::hear(honest_, parts)));
  EXPECT_FALSE(endpoint_.control->failed());
  std::byte into;
  const membership::Failure failure = failure_seen(*endpoint_.links, [&] {
    endpoint_.links->receive(2, {1, 1}, {&into, 1}, 1);
  });
  EXPECT_EQ(failure.kind, ErrorKind::peer_lost);
  EXPECT_EQ(failure.where.peer, 2);
}

// Without the relay the tree would be cut until the neighbours are connected.
TEST_F(BetweenTwo, WhoLeavesPassesOnWhatIsSaidUntilItsNeighboursHaveRegrouped) {
  const std::string start = control::goodbye(0, 0).substr(4, 13);  // the silences follow
  const auto goodbye = [&](const std::string& heard) { return contains(heard, start); };
  const std::jthread leaving([&] { endpoint_ = Endpoint{}; });
  EXPECT_TRUE(goodbye(test::hear(stranger_, goodbye)));
  EXPECT_TRUE(say(stranger_, control::failure(ErrorKind::remote_failure, "the disk is full")));
  const auto told = [](const std::string& heard) { return contains(heard, "the disk is full"); };
  EXPECT_TRUE(told(test::hear(honest_, told)));
}

TEST_F(BetweenTwo, WhatIsAskedOfAnotherIsPassedOnOnce) {
  const std::string question = control::question(1, 2, 7);
  EXPECT_TRUE(say(stranger_, question + question + control::failure(ErrorKind::remote_failure, "the end")));
  const std::string heard = test::hear(honest_, [](const std::string& all) { return contains(all, "the end"); });
  const std::size_t first = heard.find(question);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(heard.find(question, first + 1), std::string::npos);
}

/// Rank 1 of three, and a scripted rank 0: it is called and must not call.
TEST(Called, BySomeoneWhomItShouldCallItselfARankClosesTheConnection) {
  const auto board = connect::rendezvous::make_board();
  Endpoint me;
  std::jthread joining([&] {
    GroupOptions options = test::quiet_options();
    options.rank = 1;
    options.size = 3;
    const auto meeting = connect::rendezvous::in_memory(board);
    me = join(options, *meeting);
  });
  std::jthread third([&] { const test::ScriptedPeer may_call(board, 2, 3); });  // rank 1 listens for it
  const test::ScriptedPeer peer(board, 0, 3);
  socket::Channel edge = peer.answer();
  joining.join();
  for (const auto purpose : {connect::Purpose::data, connect::Purpose::control}) {
    socket::Channel channel = peer.connect(1, purpose);
    EXPECT_TRUE(test::is_cut_off(channel));
  }
  EXPECT_FALSE(me.control->failed());
  edge.close();
}

/// A member with the secret whose rank or purpose does not exist in the group.
class Placeless : public ControlStranger,
                  public testing::WithParamInterface<std::tuple<std::int32_t, int, std::uint32_t>> {};

TEST_P(Placeless, IsClosedAndDisturbsNobody) {
  const auto [from, purpose, stream] = GetParam();
  const connect::Hello hello{.version = {},
                             .purpose = static_cast<connect::Purpose>(purpose),
                             .group = pair_.peer->group(),
                             .from = from,
                             .to = 0,
                             .stream = stream};
  auto handshake = connect::Handshake::call(socket::Channel(pair_.peer->dial(0)), hello, {}, pair_.peer->meeting());
  while (handshake.advance() == connect::Handshake::State::reading) test::await_readable(handshake.channel().socket());
  ASSERT_EQ(handshake.state(), connect::Handshake::State::done) << handshake.reason();
  socket::Channel channel = handshake.take();
  EXPECT_TRUE(test::is_cut_off(channel));
  EXPECT_FALSE(pair_.endpoint.control->failed());
}

// Purposes: 2 is control, 3 data, 4 memory, which is not opened over TCP. The edge to rank 1 exists already.
INSTANTIATE_TEST_SUITE_P(Control, Placeless,
                         testing::Values(std::tuple(1, 2, 0U), std::tuple(0, 2, 0U), std::tuple(2, 2, 0U),
                                         std::tuple(-1, 2, 0U), std::tuple(kLowest, 3, 0U), std::tuple(99, 3, 0U),
                                         std::tuple(1, 3, 1U), std::tuple(1, 3, kHuge), std::tuple(1, 4, 0U),
                                         std::tuple(1, 1, 0U), std::tuple(1, 0, 0U), std::tuple(1, 255, 0U)));

// The time between two looks of the control thread counts as two heartbeats at most, however long the process was
// stopped.
TEST(ControlThread, DoesNotTakeItsOwnStopForTheSilenceOfOthers) {
  constexpr auto kSilence = 2s;
  GroupOptions options = test::quiet_options();
  options.silence = kSilence;
  bool was_stopped = false;
  options.log = {LogLevel::info, [&](LogLevel, std::string_view line) {  // on the control thread
                   if (!line.starts_with("no connection from") || std::exchange(was_stopped, true)) return;
                   std::this_thread::sleep_for(kSilence + 100ms);  // the stop
                 }};
  test::Pair pair(options);
  socket::Channel stranger(pair.peer->dial(0));
  EXPECT_TRUE(say(pair.control, control::heartbeat(1, 0, "")));
  EXPECT_TRUE(say(stranger, "nonsense"));
  EXPECT_TRUE(test::is_cut_off(stranger));
  EXPECT_TRUE(say(pair.control, control::question(1, 0, 1)));
  const std::string start = Written().number(std::uint8_t{4}).number(0).number(1).number(std::uint64_t{1}).bytes;
  const auto answered = [&](const std::string& heard) { return contains(heard, start); };
  EXPECT_TRUE(answered(test::hear(pair.control, answered)));
  EXPECT_FALSE(pair.endpoint.control->failed()) << pair.endpoint.control->failure()->message;
}

}  // namespace
}  // namespace syncopate::transport
