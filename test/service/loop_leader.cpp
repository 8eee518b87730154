// LoopLeader: a caller that waits runs the streams itself; their thread runs them when no caller does.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "service/ends.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;

constexpr std::size_t kLarge = 300'000;  ///< bytes that the sender leaves to the loop

/// A worker's end whose messages the server returns. It counts them, and those that arrive on the thread that made it.
class Echoed final {
 public:
  explicit Echoed(const std::string& address)
      : streams_(end_named("worker 0")),
        stream_(streams_.dial({.address = address}, record_.events([this](const std::string&) {
          if (std::this_thread::get_id() == maker_) ++own_;
          ++count_;
        }))) {}
  void send(std::size_t bytes) { stream_->send(0, {}, body_of(std::string(bytes, 'm'))); }
  bool wait_for(int count) {
    return streams_.wait(at_last(), [this, count] { return count_ >= count; });
  }
  [[nodiscard]] int own() const { return own_; }
  [[nodiscard]] Record& record() { return record_; }
  [[nodiscard]] Streams& streams() { return streams_; }

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  std::atomic<int> own_ = 0, count_ = 0;
  Record record_;
  Streams streams_;
  const std::unique_ptr<Stream> stream_;  ///< ends first
};

Server echoing() {
  return Server({"127.0.0.1:0"}, end_named("server 0"),
                [](Stream& stream, const std::string& message) { stream.send(0, {}, body_of(message)); });
}

TEST(LoopLeader, AWaitingCallerReceivesItsMessagesItself) {
  Server server = echoing();
  Echoed echoed(server.address());
  // Which thread reads a reply that arrives while the loop passes on is not determined; in the end it is the caller.
  int sent = 0;
  while (echoed.own() == 0 && sent < 10'000) {
    echoed.send(1);
    ASSERT_TRUE(echoed.wait_for(++sent));
  }
  EXPECT_GT(echoed.own(), 0);
}

TEST(LoopLeader, WhatArrivesOrIsSentAfterACallerHasLeftIsServed) {
  Server server = echoing();
  Echoed echoed(server.address());
  std::size_t messages = 0;
  for (int round = 0; round < 50; ++round) {
    echoed.send(1);
    ASSERT_TRUE(echoed.wait_for(static_cast<int>(++messages)));
    server.stream().send(0, head_of("unasked"), {});
    ASSERT_EQ(echoed.record().await_messages(++messages).size(), messages);
    echoed.send(kLarge);
    ASSERT_EQ(echoed.record().await_messages(++messages).size(), messages);
  }
}

TEST(LoopLeader, EveryOneOfManyCallersReturns) {
  constexpr int kCallers = 4, kRounds = 200;
  Server server = echoing();
  Echoed echoed(server.address());
  std::vector<std::jthread> callers;
  std::atomic<int> returned = 0;
  for (int caller = 0; caller < kCallers; ++caller)
    callers.emplace_back([&] {
      for (int round = 1; round <= kRounds; ++round) {
        echoed.send(round % 10 == 0 ? kLarge : 1);
        if (echoed.wait_for(round)) ++returned;
      }
    });
  callers.clear();
  EXPECT_EQ(returned, kCallers * kRounds);
  EXPECT_TRUE(echoed.wait_for(kCallers * kRounds));
}

TEST(LoopLeader, AWakeUpShowsACallerWhatChangedElsewhere) {
  Server server = echoing();
  Echoed echoed(server.address());
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> is_asked = false, has_changed = false;
    std::jthread other([&] {
      is_asked.wait(false);
      has_changed = true;
      echoed.streams().wake();
    });
    EXPECT_TRUE(echoed.streams().wait(at_last(), [&] {
      is_asked = true;
      is_asked.notify_all();
      return has_changed.load();
    }));
  }
}

TEST(LoopLeader, ADeadlineThatHasPassedEndsAWait) {
  Server server = echoing();
  Echoed echoed(server.address());
  for (int round = 0; round < 100; ++round)
    EXPECT_FALSE(echoed.streams().wait(std::chrono::steady_clock::now(), [] { return false; }));
  echoed.send(1);
  EXPECT_TRUE(echoed.wait_for(1));
}

TEST(LoopLeader, AForkedChildDoesNotRunItsParentsStreams) {
  Server server = echoing();
  Echoed echoed(server.address());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    bool is_refused = false;
    try {
      echoed.streams().wait(std::chrono::steady_clock::now(), [] { return false; });
    } catch (const Misuse&) {
      is_refused = true;
    }
    ::_exit(is_refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  echoed.send(1);
  EXPECT_TRUE(echoed.wait_for(1));
}

}  // namespace
}  // namespace syncopate::server::streams
