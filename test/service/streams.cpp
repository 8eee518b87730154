// Streams: messages arrive whole, once and in the order of their priorities; bodies are not copied.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "sanitized.hpp"
#include "service/ends.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;

/// Messages that differ in every byte from their neighbours.
std::string drawn(std::size_t bytes, std::size_t seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 131 + seed * 37 + i / 251) & 0xff);
  return text;
}

class Addresses : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::string address() {
    const std::string text = GetParam();
    return text == "@" ? "@syncopate-test-" + std::to_string(::getpid()) : text;
  }
};

TEST_P(Addresses, AMessageArrivesWholeOnceAndInOrderBothWays) {
  Server server({address()}, end_named("server 0"),
                [](Stream& stream, const std::string& message) { stream.send(5, head_of("echo "), body_of(message)); });
  Record record;
  const auto stream = dial(server.address(), end_named("worker 3"), record.events());
  EXPECT_EQ(text_of(stream->peer()), "server 0");
  EXPECT_EQ(text_of(server.stream().peer()), "worker 3");
  std::vector<std::string> sent;
  for (const std::size_t bytes : {1U, 2U, 63U, 64U, 65U, 4096U, 70'000U, 1U << 20, 1U << 20, 3U})
    sent.push_back(drawn(std::min<std::size_t>(bytes, kMostBodyBytes - 5), sent.size()));
  for (const std::string& message : sent) stream->send(0, {}, body_of(message));
  for (const std::string& message : sent) stream->send(0, head_of("head"), body_of(message));
  const auto received = server.record().await_messages(2 * sent.size());
  const auto echoed = record.await_messages(2 * sent.size());
  ASSERT_EQ(received.size(), 2 * sent.size());
  ASSERT_EQ(echoed.size(), 2 * sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(received[i] == sent[i]) << "message " << i;
    EXPECT_TRUE(received[sent.size() + i] == "head" + sent[i]) << "message " << i;
    EXPECT_TRUE(echoed[i] == "echo " + sent[i]) << "message " << i;
  }
  EXPECT_TRUE(record.are_aligned() && server.record().are_aligned());
}

INSTANTIATE_TEST_SUITE_P(Of, Addresses, testing::Values("127.0.0.1:0", "[::1]:0", "@"), [](const auto& address) {
  const std::string text = address.param;
  return std::string(text == "@" ? "unix" : text.starts_with('[') ? "tcp6" : "tcp");
});

TEST(Streams, ALargestMessageIsTakenAndALargerOneIsRefusedWhereItIsSent) {
  Server server;
  const auto stream = dial(server.address(), end_named("worker 0"), {});
  const std::string head(kMostHeadBytes, 'h');
  stream->send(0, head_of(head), body_of(std::string(kMostBodyBytes, 'b')));
  EXPECT_EQ(server.record().await_messages(1).front().size(), kMostHeadBytes + kMostBodyBytes);
  EXPECT_THROW(stream->send(0, head_of(head + "h"), {}), Misuse);
  EXPECT_THROW(stream->send(0, {}, body_of(std::string(kMostBodyBytes + 1, 'b'))), Misuse);
  EXPECT_THROW(stream->send(0, {}, {}), Misuse);
  stream->send(0, head_of("on"), {});
  EXPECT_EQ(server.record().await_messages(2).back(), "on");
}

/// A server that reads nothing before the gate opens.
class Gate final {
 public:
  void open() {
    is_open_.change([](bool& open) { open = true; });
  }
  void pass() {
    is_open_.wait_until(
        at_last(), [](bool open) { return open; }, [](bool) {});
  }

 private:
  base::Guarded<bool> is_open_{false};
};

TEST(Streams, WhatWaitsLeavesLowerNumbersFirst) {
  const std::vector<std::pair<std::uint64_t, const char*>> sent = {{9, "d"}, {9, "e"}, {3, "b"}, {2, "a"}, {3, "c"}};
  std::promise<Stream*> dialled;
  Server server;
  Record record;
  // Nothing leaves during a callback: the thread that writes runs it, and the first message is too long for `send`.
  const auto stream = dial(server.address(), end_named("worker 0"), record.events([&](const std::string&) {
    Stream* const self = dialled.get_future().get();
    const auto body = body_of(std::string(kMostBodyBytes, 'x'));
    for (const auto& [priority, name] : sent) self->send(priority, head_of(name), body);
  }));
  dialled.set_value(stream.get());
  server.stream().send(0, head_of("begin"), {});
  std::string order;
  for (const std::string& message : server.record().await_messages(sent.size())) order += message.front();
  EXPECT_EQ(order, "abcde");
}

TEST(Streams, ALowerNumberOvertakesAllButTheLittleThatHasBegunToLeave) {
  constexpr std::size_t kMany = 24;
  std::promise<Stream*> dialled;
  const std::shared_future<Stream*> worker = dialled.get_future().share();
  bool is_first_sent = false;
  // Between ends on one host the kernel holds less than one message. The server reads nothing during its callback.
  Server server({"@syncopate-test-" + std::to_string(::getpid())}, end_named("server 0"),
                [&](Stream&, const std::string&) {
                  if (!std::exchange(is_first_sent, true)) worker.get()->send(2, head_of("first"), {});
                });
  Record record;
  const auto stream = dial(server.address(), end_named("worker 0"), record.events([&](const std::string&) {
    const auto body = body_of(std::string(kMostBodyBytes, 'x'));
    for (std::size_t i = 0; i < kMany; ++i) worker.get()->send(9, head_of("later"), body);
  }));
  dialled.set_value(stream.get());
  server.stream().send(0, head_of("begin"), {});
  const auto messages = server.record().await_messages(kMany + 1);
  EXPECT_LT(std::ranges::find(messages, "first") - messages.begin(), 4) << "received, in the kernel and begun to leave";
}

TEST(Streams, ABodyIsNotCopiedAndItsOwnerIsReleasedOnceItIsWritten) {
  constexpr long kMany = 100;
  Gate gate;
  Server server({"127.0.0.1:0"}, end_named("server 0"), [&](Stream&, const std::string&) { gate.pass(); });
  const auto one = dial(server.address(), end_named("worker 0"), {});
  const auto other = dial(server.address(), end_named("worker 1"), {});
  const auto owner = std::make_shared<const std::string>(kMostBodyBytes, 'x');
  for (long i = 0; i < kMany; ++i) one->send(0, {}, {owner, std::as_bytes(std::span(*owner))});
  for (long i = 0; i < kMany; ++i) other->send(0, {}, {owner, std::as_bytes(std::span(*owner))});
  EXPECT_GT(owner.use_count(), kMany) << "what waits refers to the one body";
  gate.open();
  one->close("");
  other->close("");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(server.record(i).await_messages(kMany).size(), kMany);
    EXPECT_EQ(server.record(i).await_failure(), "");
  }
  const base::Time bound = at_last();
  while (owner.use_count() > 1 && std::chrono::steady_clock::now() < bound) std::this_thread::yield();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(Streams, ManyWorkersSendAtTheSameTime) {
  constexpr std::size_t kWorkers = syncopate::test::kSanitized ? 8 : 32, kMessages = 50;
  Server server({"127.0.0.1:0"}, end_named("server 0"),
                [](Stream& stream, const std::string& message) { stream.send(1, head_of(message), {}); });
  std::vector<Record> records(kWorkers);
  std::vector<std::unique_ptr<Stream>> streams;
  for (std::size_t i = 0; i < kWorkers; ++i)
    streams.push_back(dial(server.address(), end_named("worker " + std::to_string(i)), records[i].events()));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kWorkers; ++i)
    threads.emplace_back([&, i] {
      for (std::size_t k = 0; k < kMessages; ++k) streams[i]->send(0, head_of(std::to_string(i * kMessages + k)), {});
    });
  for (std::size_t i = 0; i < kWorkers; ++i) {
    const auto echoed = records[i].await_messages(kMessages);
    ASSERT_EQ(echoed.size(), kMessages);
    for (std::size_t k = 0; k < kMessages; ++k) EXPECT_EQ(echoed[k], std::to_string(i * kMessages + k));
  }
}

}  // namespace
}  // namespace syncopate::server::streams
