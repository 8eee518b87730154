// Endings: each end reports the end of a stream once with its cause, and nothing comes after it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sanitized.hpp"
#include "service/ends.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;

TEST(Endings, AnEndInOrderComesAfterAllThatWasSentAndIsToldOnceAtBothEnds) {
  for (const bool by_server : {false, true}) {
    Server server;
    Record record;
    auto stream = dial(server.address(), end_named("worker 0"), record.events());
    Stream& closing = by_server ? server.stream() : *stream;
    for (int i = 0; i < 50; ++i) closing.send(0, head_of("x"), body_of(std::string(100'000, 'b')));
    closing.close("");
    closing.close("a second time");
    closing.send(0, head_of("too late"), {});
    Record& other = by_server ? record : server.record();
    EXPECT_EQ(other.await_failure(), "");
    EXPECT_EQ(record.await_failure(), "");
    EXPECT_EQ(server.record().await_failure(), "");
    EXPECT_EQ(other.messages(), 50U);
    stream.reset();
    server.drop(0);
    EXPECT_EQ(record.endings(), 1U);
    EXPECT_EQ(server.record().endings(), 1U);
  }
}

TEST(Endings, AnErrorEndsTheStreamAtOnceAndItsTextReachesTheOtherEnd) {
  for (const bool by_server : {false, true}) {
    Server server;
    Record record;
    const auto stream = dial(server.address(), end_named("worker 0"), record.events());
    (by_server ? server.stream() : *stream).close("table 7 is unknown\n");
    Record& other = by_server ? record : server.record();
    EXPECT_EQ(other.await_failure(), "RemoteFailure");
    EXPECT_NE(other.await_ending().reason.find("table 7 is unknown?"), std::string::npos)
        << other.await_ending().reason;
    EXPECT_NE(other.await_ending().reason.find(by_server ? "server 0 (127.0.0.1:" : "worker 0 (127.0.0.1:"),
              std::string::npos)
        << other.await_ending().reason;
    EXPECT_EQ((by_server ? server.record() : record).await_failure(), "") << "who closes knows why";
  }
}

TEST(Endings, BothEndsMayCloseWhileBothAreSending) {
  for (int round = 0; round < 20; ++round) {
    Server server;
    Record record;
    const auto stream = dial(server.address(), end_named("worker 0"), record.events());
    Stream& theirs = server.stream();
    for (int i = 0; i < 4; ++i) {
      stream->send(0, {}, body_of(std::string(kMostBodyBytes, 'w')));
      theirs.send(0, {}, body_of(std::string(kMostBodyBytes, 's')));
    }
    if (round % 3 != 1) stream->close("");
    if (round % 3 != 0) theirs.close("");
    EXPECT_EQ(record.await_failure(), "") << record.await_ending().reason;
    EXPECT_EQ(server.record().await_failure(), "") << server.record().await_ending().reason;
  }
}

TEST(Endings, WhatReceivedThrowsIsToldToTheOtherEnd) {
  Server server({"127.0.0.1:0"}, end_named("server 0"), [](Stream&, const std::string& message) {
    if (message == "bad") throw Corrupt("part 3 has 5 elements");
  });
  Record record;
  const auto stream = dial(server.address(), end_named("worker 0"), record.events());
  for (const char* message : {"good", "bad", "after"}) stream->send(0, head_of(message), {});
  EXPECT_EQ(record.await_failure(), "RemoteFailure");
  EXPECT_NE(record.await_ending().reason.find("part 3 has 5 elements"), std::string::npos);
  EXPECT_EQ(server.record().await_failure(), "Corrupt");
  EXPECT_EQ(server.record().messages(), 1U) << "nothing is received after the error";
}

TEST(Endings, AListenerMayTurnACallerAway) {
  for (const bool drops : {true, false}) {
    const Streams server(end_named("server 0"), {"127.0.0.1:0"}, [&](std::unique_ptr<Stream> stream) -> StreamEvents {
      if (!drops) throw Misuse(text_of(stream->peer()) + " is here already");
      return {};
    });
    Record record;
    const auto stream = dial(server.addresses()[0], end_named("worker 5"), record.events());
    EXPECT_EQ(record.await_failure(), "RemoteFailure");
    const std::string reason = record.await_ending().reason;
    EXPECT_NE(reason.find(drops ? "it was refused" : "worker 5 is here already"), std::string::npos) << reason;
  }
}

TEST(Endings, ADestroyedListenerEndsItsStreamsAndTheyMayOutliveIt) {
  Server server;
  Record record;
  const auto stream = dial(server.address(), end_named("worker 0"), record.events());
  Stream& theirs = server.stream();
  server.stop();
  EXPECT_EQ(server.record().endings(), 1U) << "no callback comes after the listener is gone";
  EXPECT_EQ(server.record().await_failure(), "PeerLost");
  EXPECT_EQ(record.await_failure(), "PeerLost");
  theirs.send(0, head_of("nobody"), {});
  theirs.close("");
}

TEST(Endings, NoCallbackComesAfterAStreamIsDestroyedWhileOthersSend) {
  for (int round = 0; round < (syncopate::test::kSanitized ? 20 : 60); ++round) {
    std::atomic<bool> is_gone{false}, came_after{false};
    std::atomic<bool> stops{false};
    Server server({"127.0.0.1:0"}, end_named("server 0"), [](Stream& stream, const std::string& message) {
      stream.send(0, head_of("to you"), body_of(message));
    });
    const auto note = [&] { came_after = came_after || is_gone; };
    auto stream = dial(server.address(), end_named("worker 0"),
                       {.received = [&](const Payload&) { note(); }, .ended = [&](const Ending&) { note(); }});
    std::jthread sender([&, raw = stream.get()] {
      for (int i = 0; i < 20 && !stops; ++i) raw->send(0, head_of("x"), body_of(std::string(50'000, 'b')));
    });
    std::ignore = server.record().await_messages(static_cast<std::size_t>(round % 5));
    if (round % 2 == 0) stream->close("");
    if (round % 3 == 0) server.drop(0);
    stops = true;
    sender.join();
    stream.reset();
    is_gone = true;
    if (round % 3 != 0) std::ignore = server.record().await_ending();
    EXPECT_FALSE(came_after);
  }
}

TEST(Endings, ADestroyedStreamIsLostForTheOtherEndUnlessItWasClosed) {
  Server server;
  dial(server.address(), end_named("worker 0"), {}).reset();
  EXPECT_EQ(server.record(0).await_failure(), "PeerLost");
  const auto closed = [&] {
    auto stream = dial(server.address(), end_named("worker 1"), {});
    for (int i = 0; i < 30; ++i) stream->send(0, {}, body_of(std::string(kMostBodyBytes, 'b')));
    stream->close("");
  };
  closed();
  EXPECT_EQ(server.record(1).await_failure(), "");
  EXPECT_EQ(server.record(1).messages(), 30U) << "a closed stream sends what it holds";
}

}  // namespace
}  // namespace syncopate::server::streams
