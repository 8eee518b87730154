// Damaged frames: whatever a peer sends, it fails the group by name and nothing else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "transport/ranks.hpp"
#include "transport/tcp/frame.hpp"

namespace syncopate::transport {
namespace {

using test::finish;
using test::quiet_options;
using test::with_ranks;
using namespace std::chrono_literals;

// A peer that knows the protocol and breaks it.

class Damage : public testing::Test {
 protected:
  /// Rank 0 expects 8 bytes of operation 5 while `bytes` come from rank 1.
  membership::Failure after(const std::vector<std::byte>& bytes) {
    const socket::Channel data = send(bytes);
    std::array<std::byte, 8> into;
    pair_.endpoint.links->receive(1, {5, 9}, into, 1);
    return test::failure_seen(*pair_.endpoint.links);
  }
  socket::Channel send(const std::vector<std::byte>& bytes) {
    socket::Channel data = pair_.peer->connect(0, connect::Purpose::data);
    EXPECT_EQ(data.write(base::ConstBytes(bytes)).bytes, bytes.size());
    return data;
  }
  std::vector<std::byte> frame(const Label& label, std::size_t bytes, bool wrong_checksum = false) {
    tcp::Frame header{
        .group = static_cast<std::uint32_t>(pair_.peer->group()), .epoch = 0, .label = label, .payload_bytes = bytes};
    header.checked = wrong_checksum;
    const auto encoded = encode(header);
    std::vector<std::byte> all(encoded.begin(), encoded.end());
    all.resize(all.size() + bytes);
    return all;
  }
  test::Pair pair_;
};

TEST_F(Damage, ADamagedHeaderIsCorrupt) {
  auto bytes = frame({5, 9}, 8);
  bytes[30] ^= std::byte{4};
  const membership::Failure failure = after(bytes);
  EXPECT_EQ(failure.kind, "Corrupt");
  EXPECT_TRUE(test::contains(failure.message, "from rank 1")) << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
}

TEST_F(Damage, ADamagedPayloadIsCorrupt) { EXPECT_EQ(after(frame({5, 9}, 8, true)).kind, "Corrupt"); }

// This rank took part in operation 4 and expected nothing in it: that is what the two differ in.
TEST_F(Damage, AnEarlierOperationIsAMismatchInThatOne) {
  pair_.endpoint.control->began({4, 8, "broadcast f32 x 0 root 1"});
  const membership::Failure failure = after(frame({4, 9}, 8));
  EXPECT_EQ(failure.kind, "Mismatch");
  EXPECT_TRUE(test::contains(failure.message, "as number 4: rank 0 called broadcast f32 x 0 root 1"))
      << failure.message;
}

TEST_F(Damage, AnotherLengthIsAMismatchThatNamesBoth) {
  const membership::Failure failure = after(frame({5, 9}, 16));
  EXPECT_EQ(failure.kind, "Mismatch");
  EXPECT_TRUE(test::contains(failure.message, "16 bytes where 8 were expected")) << failure.message;
}

TEST_F(Damage, AnotherOperationIsAMismatchEvenIfThePeerDoesNotAnswer) {
  pair_.endpoint.control->began({5, 9, "allreduce f32 x 2 sum"});
  const membership::Failure failure = after(frame({6, 9}, 8));
  EXPECT_EQ(failure.kind, "Mismatch");
  EXPECT_TRUE(test::contains(failure.message, "rank 0 called allreduce f32 x 2 sum; rank 1 called something else"))
      << failure.message;
}

TEST_F(Damage, GarbageInAllFormsOnlyEverFailsTheGroup) {
  std::mt19937_64 random(3);
  std::vector<std::byte> noise(5000);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  EXPECT_EQ(after(noise).kind, "Corrupt");
}

TEST_F(Damage, AConnectionClosedInMidFrameIsALostPeer) {
  auto bytes = frame({5, 9}, 8);
  bytes.resize(68);
  { const socket::Channel gone = send(bytes); }
  std::array<std::byte, 8> into;
  pair_.endpoint.links->receive(1, {5, 9}, into, 1);
  const membership::Failure failure = test::failure_seen(*pair_.endpoint.links);
  EXPECT_EQ(failure.kind, "PeerLost");
  EXPECT_EQ(failure.where.rank, 0);
  EXPECT_EQ(failure.where.peer, 1);
}

}  // namespace
}  // namespace syncopate::transport
