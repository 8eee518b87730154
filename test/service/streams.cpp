// Streams: messages arrive whole, once and in the order of their priorities; bodies are not copied.
#include <gtest/gtest.h>

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

TEST(Streams, LowerNumbersOvertakeWhatHasNotLeft) {
  constexpr std::size_t kMany = 24;
  Gate gate;
  Server server({"127.0.0.1:0"}, end_named("server 0"), [&](Stream&, const std::string&) { gate.pass(); });
  const auto stream = dial(server.address(), end_named("worker 0"), {});
  for (std::size_t i = 0; i < kMany; ++i)
    stream->send(9, head_of(std::string(1, static_cast<char>('a' + i))), body_of(std::string(kMostBodyBytes, 'x')));
  stream->send(3, head_of("second"), {});
  stream->send(2, head_of("first"), {});
  stream->send(3, head_of("third"), {});
  gate.open();
  std::vector<std::string> order;
  for (const std::string& message : server.record().await_messages(kMany + 3))
    order.push_back(message.size() > kMostBodyBytes ? message.substr(0, 1) : message);
  const auto at = [&](const char* name) { return std::ranges::find(order, name) - order.begin(); };
  EXPECT_LT(at("first"), 8) << "it waited behind more than what the connection and the kernel hold";
  EXPECT_EQ(at("second"), at("first") + 1);
  EXPECT_EQ(at("third"), at("first") + 2);
  std::erase_if(order, [](const std::string& message) { return message.size() > 1; });
  EXPECT_EQ(order.size(), kMany);
  EXPECT_TRUE(std::ranges::is_sorted(order));
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
