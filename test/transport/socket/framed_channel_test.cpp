// Framed messages: they arrive whole and in order, and no connection is read for longer than the others can wait.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "syncopate/error.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::transport::socket {
namespace {

constexpr std::size_t kMost = 100;

/// A framed channel, and the end at which a test writes bytes.
struct Ends {
  Ends() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    writer = Channel(Descriptor(ends[0]));
    reader.emplace(Channel(Descriptor(ends[1])), kMost);
  }
  [[nodiscard]] std::size_t write(std::string_view bytes) {
    return writer.write(std::as_bytes(std::span(bytes))).bytes;
  }
  Channel writer;
  std::optional<FramedChannel> reader;
};

std::string framed(const std::string& text) {
  return std::string(1, static_cast<char>(text.size())) + std::string(3, '\0') + text;
}

TEST(FramedChannel, ReadsAtMost64KiBAtATime) {
  Ends ends;
  const std::string message = framed(std::string(96, 'x'));
  std::string all;
  for (int i = 0; i < 2000; ++i) all += message;
  const std::size_t written = ends.write(all) / message.size();
  ASSERT_GT(written, 700U) << "more than 64 KiB wait";
  std::vector<std::string> messages;
  EXPECT_TRUE(ends.reader->read(messages));
  EXPECT_LE(messages.size() * message.size(), 64U << 10);
  for (std::size_t before = 0; messages.size() < written; before = messages.size()) {
    ASSERT_TRUE(ends.reader->read(messages));
    ASSERT_GT(messages.size(), before);
  }
  for (const std::string& each : messages) EXPECT_EQ(each, message.substr(4));
}

TEST(FramedChannel, PutsPiecesTogether) {
  Ends ends;
  std::vector<std::string> messages;
  for (const char letter : framed("first") + framed("") + framed("third")) {
    ASSERT_EQ(ends.write({&letter, 1}), 1U);
    EXPECT_TRUE(ends.reader->read(messages));
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"first", "", "third"}));
}

TEST(FramedChannel, RefusesALengthBeyondTheLimitBeforeTheMessageComes) {
  Ends ends;
  ASSERT_EQ(ends.write(std::string{kMost + 1, 0, 0, 0}), 4U);
  std::vector<std::string> messages;
  EXPECT_THROW(std::ignore = ends.reader->read(messages), Corrupt);
  EXPECT_TRUE(messages.empty());
}

TEST(FramedChannel, ThatEndsGivesWhatCameBefore) {
  Ends ends;
  ASSERT_GT(ends.write(framed("last words") + "cut"), 0U);
  ends.writer.close();
  std::vector<std::string> messages;
  EXPECT_TRUE(ends.reader->read(messages));
  EXPECT_EQ(messages, std::vector<std::string>{"last words"});
  EXPECT_FALSE(ends.reader->read(messages));
}

}  // namespace
}  // namespace syncopate::transport::socket
