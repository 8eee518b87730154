// A rank that sends wrong frames fails the group by name, and its bytes never pass for the expected data.
#include "transport/stranger.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace syncopate::transport {
namespace {

using test::contains;
using test::failure_seen;
using test::FrameFields;
using test::say;
using namespace std::chrono_literals;

constexpr std::string_view kEight = "8 bytes.";

/// Rank 0 of two expects 8 bytes of operation 5 from a scripted rank 1.
class DataStranger : public testing::Test {
 protected:
  membership::Failure after(const std::string& bytes) {
    socket::Channel data = pair_.peer->connect(0, connect::Purpose::data);
    EXPECT_TRUE(say(data, bytes));
    return failure_seen(*pair_.endpoint.links, [&] { pair_.endpoint.links->receive(1, {5, 9}, into_, 1); });
  }
  [[nodiscard]] FrameFields fields() const { return {.group = static_cast<std::uint32_t>(pair_.peer->group())}; }
  [[nodiscard]] std::string fitting() const { return fields().header() + std::string(kEight); }
  [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(into_.data()), into_.size()}; }

  std::array<std::byte, 8> into_{};
  test::Pair pair_;
};

TEST_F(DataStranger, ThatFramesAsTheOthersDoIsUnderstood) {
  socket::Channel data = pair_.peer->connect(0, connect::Purpose::data);
  pair_.endpoint.links->receive(1, {5, 9}, into_, 1);
  for (const char letter : fitting()) EXPECT_TRUE(say(data, {&letter, 1}));
  test::finish(*pair_.endpoint.links, 1);
  EXPECT_EQ(text(), kEight);
}

// Bytes after a frame are not examined before a receive is posted for them, and then they fail that receive.
TEST_F(DataStranger, ThatSendsMoreThanWasExpectedSpoilsNothingThatWas) {
  socket::Channel data = pair_.peer->connect(0, connect::Purpose::data);
  EXPECT_TRUE(say(data, fitting() + std::string(20'000, 'g')));
  pair_.endpoint.links->receive(1, {5, 9}, into_, 1);
  test::finish(*pair_.endpoint.links, 1);
  EXPECT_EQ(text(), kEight);
  std::array<std::byte, 8> next{};
  EXPECT_EQ(failure_seen(*pair_.endpoint.links,
                         [&] {
                           pair_.endpoint.links->receive(1, {6, 9}, next, 1);
                         })
                .kind,
            ErrorKind::corrupt);
  EXPECT_EQ(next, (std::array<std::byte, 8>{}));
}

struct Unfit {
  const char* name;
  FrameFields fields;  ///< `group` is added to the right one
  ErrorKind kind;
  const char* says;
};

class Unfitting : public DataStranger, public testing::WithParamInterface<Unfit> {};

TEST_P(Unfitting, FrameFailsByName) {
  FrameFields wrong = GetParam().fields;
  wrong.group += fields().group;
  pair_.endpoint.control->began({5, 9, "allreduce f32 x 2 sum"});
  const membership::Failure failure = after(wrong.header() + std::string(kEight));
  EXPECT_EQ(failure.kind, GetParam().kind);
  EXPECT_TRUE(contains(failure.message, GetParam().says)) << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
}

constexpr auto kBit = std::uint64_t{1};

INSTANTIATE_TEST_SUITE_P(
    Data, Unfitting,
    testing::Values(
        Unfit{"Magic", {.magic = 0x4753}, ErrorKind::corrupt, "begins with 4753"},
        Unfit{"Version", {.version = 3}, ErrorKind::corrupt, "version 3"},
        Unfit{"Flags", {.flags = 2}, ErrorKind::corrupt, "unknown flags 02"},
        Unfit{"Checksum", {.damage = 1}, ErrorKind::corrupt, "does not match its checksum"},
        Unfit{"Group", {.group = 1}, ErrorKind::corrupt, "another group"},
        Unfit{"Epoch", {.epoch_and_length = kBit << 48 | 8}, ErrorKind::corrupt, "another group"},
        Unfit{"Longer", {.epoch_and_length = 16}, ErrorKind::mismatch, "sent 16 bytes where 8 were expected"},
        Unfit{"Shorter", {.epoch_and_length = 0}, ErrorKind::mismatch, "sent 0 bytes where 8 were expected"},
        Unfit{"LongestAllowed", {.epoch_and_length = kBit << 40}, ErrorKind::mismatch, "where 8 were expected"},
        Unfit{"BeyondTheLimit", {.epoch_and_length = (kBit << 40) + 1}, ErrorKind::corrupt, "more than the limit"},
        Unfit{"AllOfItsBits", {.epoch_and_length = (kBit << 48) - 1}, ErrorKind::corrupt, "more than the limit"},
        Unfit{"NearTwoToThe64", {.epoch_and_length = ~std::uint64_t{7}}, ErrorKind::corrupt, "more than the limit"},
        Unfit{"LaterOperation", {.operation = 6}, ErrorKind::mismatch, "rank 1 called something else"},
        Unfit{"LastOperation", {.operation = ~std::uint64_t{0}}, ErrorKind::mismatch, "called something else"},
        Unfit{"Signature", {.signature = 8}, ErrorKind::mismatch, "rank 0 called allreduce f32 x 2 sum"}),
    [](const auto& one) { return one.param.name; });

TEST_F(DataStranger, ThatDamagesAPayloadOnItsWayIsFound) {
  FrameFields checked = fields();
  checked.flags = 1;
  checked.payload_checksum = static_cast<std::uint32_t>(XXH3_64bits(kEight.data(), kEight.size()));
  std::string bytes = checked.header() + std::string(kEight);
  bytes.back() ^= 1;
  const membership::Failure failure = after(bytes);
  EXPECT_EQ(failure.kind, ErrorKind::corrupt);
  EXPECT_TRUE(contains(failure.message, "a payload does not match its checksum")) << failure.message;
}

// This rank took part in operation 4 and expected nothing in it: the two ranks differ in that operation.
TEST_F(DataStranger, WhoseOperationIsAnEarlierOneDiffersInThatOne) {
  pair_.endpoint.control->began({4, 8, "broadcast f32 x 0 root 1"});
  FrameFields earlier = fields();
  earlier.operation = 4;
  const membership::Failure failure = after(earlier.header() + std::string(kEight));
  EXPECT_EQ(failure.kind, ErrorKind::mismatch);
  EXPECT_TRUE(contains(failure.message, "as number 4: rank 0 called broadcast f32 x 0 root 1")) << failure.message;
}

TEST_F(DataStranger, ThatSendsGarbageInAnyFormOnlyFailsTheGroup) {
  std::mt19937_64 random(3);
  std::string noise(5000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  EXPECT_EQ(after(noise).kind, ErrorKind::corrupt);
}

TEST_F(DataStranger, ThatClosesItsConnectionIsLostWhereverItStopped) {
  for (const std::size_t length : {0U, 1U, 39U, 40U, 47U}) {
    test::Pair pair;
    const FrameFields right{.group = static_cast<std::uint32_t>(pair.peer->group())};
    {
      socket::Channel data = pair.peer->connect(0, connect::Purpose::data);
      EXPECT_TRUE(say(data, (right.header() + std::string(kEight)).substr(0, length)));
    }
    std::array<std::byte, 8> into{};
    const membership::Failure failure = failure_seen(*pair.endpoint.links, [&] {
      pair.endpoint.links->receive(1, {5, 9}, into, 1);
    });
    EXPECT_EQ(failure.kind, ErrorKind::peer_lost) << "after " << length << " bytes";
    EXPECT_EQ(failure.where.rank, 0);
    EXPECT_EQ(failure.where.peer, 1);
  }
}

TEST_F(DataStranger, WhomNobodyExpectsFillsItsOwnConnectionOnly) {
  socket::Channel data = pair_.peer->connect(0, connect::Purpose::data);
  const std::string flood(1 << 20, 'f');
  std::size_t taken = 0;
  while (true) {
    const socket::Moved moved = data.write(std::as_bytes(std::span(flood)));
    taken += moved.bytes;
    if (moved.outcome != socket::Moved::Outcome::some) break;
  }
  EXPECT_LT(taken, 64U << 20) << "the kernel's buffers take it, this rank's memory does not";
  EXPECT_TRUE(pair_.endpoint.links->poll(test::in(20ms), {}).empty());
  EXPECT_FALSE(pair_.endpoint.control->failed());
  EXPECT_EQ(pair_.endpoint.links->traffic().second, 0U);
}

}  // namespace
}  // namespace syncopate::transport
