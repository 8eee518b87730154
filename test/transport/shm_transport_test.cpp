// Shared memory between ranks: who shares it, who may not, what a hostile peer gets, and what a lost one leaves.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <numeric>

#include "ranks.hpp"
#include "transport/shm/handover.hpp"
#include "transport/shm/lane.hpp"

namespace syncopate::transport {
namespace {

using test::finish;
using test::in;
using namespace std::chrono_literals;

GroupOptions options_for(const char* transport) {
  GroupOptions options = test::quiet_options();
  options.transport = transport;
  return options;
}

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 13 + (i >> 9) + static_cast<unsigned>(seed));
  return data;
}

/// Everyone sends `bytes` to everyone and checks what comes.
void exchange(Endpoint& me, std::size_t bytes, std::uint64_t operation) {
  std::vector<std::vector<std::byte>> out, arrived(static_cast<std::size_t>(me.size), std::vector<std::byte>(bytes));
  for (int peer = 0; peer < me.size; ++peer) out.push_back(pattern(bytes, me.rank * 16 + peer));
  int posts = 0;
  for (int peer = 0; peer < me.size; ++peer) {
    if (peer == me.rank) continue;
    const auto at = static_cast<std::size_t>(peer);
    me.links->receive(peer, {operation, 1}, arrived[at], 2 * at);
    me.links->send(peer, {operation, 1}, out[at], 2 * at + 1);
    posts += 2;
  }
  const base::Time end = in(30s);
  while (posts > 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    for (const Event& event : me.links->poll(end, {})) {
      --posts;
      if (!event.arrival) continue;
      const int peer = static_cast<int>(event.token / 2);
      const auto expected = pattern(bytes, peer * 16 + me.rank);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), event.bytes.begin(), event.bytes.end()))
          << bytes << " bytes from " << peer << " to " << me.rank;
      me.links->release(event.token);
    }
  }
}

TEST(ShmLinks, FramesOfEverySizeCross) {
  test::with_ranks(3, options_for("shm"), [](Endpoint& me) {
    EXPECT_EQ(me.kind, "shm");
    std::uint64_t operation = 0;
    for (const std::size_t bytes :
         {0UL, 1UL, 24UL, 25UL, 511UL, 512UL, 4096UL, 100'001UL, 262'144UL, 262'145UL, 1'048'576UL, 5'000'000UL})
      exchange(me, bytes, ++operation);
  });
}

TEST(ShmLinks, RanksOfOneHostShareMemoryAndOthersUseSockets) {
  const auto host_of = [](int rank) { return rank < 3 ? "left" : "right"; };
  test::with_ranks(
      5, options_for("auto"),
      [](Endpoint& me) {
        EXPECT_EQ(me.kind, "shm+tcp");
        for (std::uint64_t operation = 1; operation <= 20; ++operation) exchange(me, operation * 3001, operation);
        ASSERT_EQ(me.hosts.size(), 5U);
        EXPECT_EQ(me.hosts[0], me.hosts[2]);
        EXPECT_NE(me.hosts[2], me.hosts[3]);
      },
      host_of);
}

TEST(ShmLinks, RanksThatShareNoHostUseSockets) {
  test::with_ranks(
      3, options_for("auto"), [](Endpoint& me) { EXPECT_EQ(me.kind, "tcp"); },
      [](int rank) { return fmt::to_string(rank); });
}

TEST(ShmLinks, AskedForAcrossHostsAreMisuseOnEveryRank) {
  const auto failures = test::outcomes_of_ranks(
      3, options_for("shm"), [](Endpoint&) {}, [](int rank) { return rank == 2 ? "far" : "near"; });
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    EXPECT_THROW(std::rethrow_exception(failure), Misuse);
  }
}

TEST(ShmLinks, ArrivalsAreLentUntilTheyAreReleased) {
  test::with_ranks(2, options_for("shm"), [](Endpoint& me) {
    constexpr std::size_t kBytes = shm::kRingBytes / 16;
    constexpr std::uint64_t kFrames = 40;  // more than the lane holds
    std::vector<std::byte> memory(kBytes);
    if (me.rank == 0) {
      const auto data = pattern(kBytes, 3);
      for (std::uint64_t i = 0; i < kFrames; ++i) me.links->send(1, {1, 1}, data, i);
      return finish(*me.links, kFrames);
    }
    for (std::uint64_t i = 0; i < kFrames; ++i) me.links->receive(0, {1, 1}, memory, i);
    std::vector<Event> held;
    const auto take = [&] {
      for (const Event& event : me.links->poll(in(100ms), {})) held.push_back(event);
    };
    while (held.size() < 8) take();
    for (int i = 0; i < 3; ++i) take();
    ASSERT_LT(held.size(), kFrames) << "nothing was given back, so the lane is full";
    std::uint64_t seen = held.size();
    for (std::size_t i = held.size(); i-- > 0;) {  // in any order
      EXPECT_NE(held[i].bytes.data(), memory.data());
      EXPECT_EQ(held[i].bytes[777], pattern(kBytes, 3)[777]);
      me.links->release(held[i].token);
    }
    finish(*me.links, static_cast<int>(kFrames - seen));
  });
}

// What opens a link may come at any point of falling asleep; so may the first frame.
TEST(ShmLinks, OpenAtAnyMomentOfASleep) {
  for (int round = 0; round < 60; ++round)
    test::with_ranks(3, options_for("shm"), [&](Endpoint& me) {
      for (int spin = 0; spin < round * me.rank * 50; ++spin) std::this_thread::yield();
      exchange(me, 4, 1);
      exchange(me, 600, 2);
    });
}

TEST(ShmLinks, ARankThatLeavesWhileItIsNeededIsNamed) {
  const auto failures = test::outcomes_of_ranks(3, options_for("shm"), [](Endpoint& me) {
    exchange(me, 100, 1);
    if (me.rank == 2) return;
    std::byte byte;
    me.links->receive(2, {2, 1}, {&byte, 1}, 1);
    const Failure failure = test::failure_seen(*me.links);
    EXPECT_EQ(failure.kind, "PeerLost") << failure.message;
    EXPECT_EQ(failure.where.peer, 2);
  });
  for (const auto& failure : failures) EXPECT_FALSE(failure);
}

TEST(ShmLinks, WhatALeavingRankHasSentStillArrives) {
  test::with_ranks(2, options_for("shm"), [](Endpoint& me) {
    exchange(me, 10, 1);
    const auto data = pattern(200'000, 9);
    if (me.rank == 1) {
      me.links->send(0, {2, 1}, data, 1);
      return finish(*me.links, 1);
    }
    std::vector<std::byte> got(data.size());
    me.links->receive(1, {2, 1}, got, 1);
    finish(*me.links, 1);
  });
}

TEST(ShmLinks, AnotherOperationOrLengthIsAMismatch) {
  for (const bool length : {false, true})
    test::with_ranks(2, options_for("shm"), [&](Endpoint& me) {
      me.control->began({1, 5, "something"});
      std::vector<std::byte> data(me.rank == 0 && length ? 900 : 1000);
      const Failure failure = test::failure_seen(*me.links, [&] {
        if (me.rank == 0)
          me.links->send(1, {1, 5}, data, 1);
        else
          me.links->receive(0, {1, length ? 5U : 6U}, data, 1);
      });
      EXPECT_EQ(failure.kind, "Mismatch") << failure.message;
    });
}

/// Rank 0 with a scripted rank 1 that shares its host.
class Neighbour : public testing::Test {
 protected:
  test::Pair pair_{options_for("auto"), tcp::user_identity()};
  std::vector<std::byte> into_ = std::vector<std::byte>(1000);

  void give_memory(const tcp::Channel& channel, const tcp::Descriptor& memory) {
    ASSERT_TRUE(shm::give(channel.socket(), memory));
  }
  [[nodiscard]] Failure failure_of_receive() {
    return test::failure_seen(*pair_.endpoint.links, [&] { pair_.endpoint.links->receive(1, {1, 1}, into_, 1); });
  }
};

TEST_F(Neighbour, MayHandOverMemoryAndSpeak) {
  const auto channel = pair_.peer->connect(0, tcp::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  shm::LaneWriter writer(region.ring(shm::Side::maker), region.tail(shm::Side::maker));
  ASSERT_TRUE(writer.push({{1, 1}, 1000}, pattern(1000, 2)));
  pair_.endpoint.links->receive(1, {1, 1}, into_, 1);
  finish(*pair_.endpoint.links, 1);
}

TEST_F(Neighbour, WithForeignMemoryIsCorrupt) {
  const auto channel = pair_.peer->connect(0, tcp::Purpose::memory);
  give_memory(channel, tcp::Descriptor(::memfd_create("unsealed", MFD_CLOEXEC)));
  const Failure failure = failure_of_receive();
  EXPECT_EQ(failure.kind, "Corrupt") << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
}

TEST_F(Neighbour, WithoutADescriptorIsCorrupt) {
  auto channel = pair_.peer->connect(0, tcp::Purpose::memory);
  shm::ring(channel);
  EXPECT_EQ(failure_of_receive().kind, "Corrupt");
}

TEST_F(Neighbour, ThatWritesNonsenseIsCorrupt) {
  const auto channel = pair_.peer->connect(0, tcp::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  std::memset(region.ring(shm::Side::maker), 0xee, 4096);
  const Failure failure = failure_of_receive();
  EXPECT_EQ(failure.kind, "Corrupt") << failure.message;
}

// A lane looks at its tail when it seems full: here after as many replies as it has lines.
TEST_F(Neighbour, ThatGivesBackWhatItCannotHaveReadIsCorrupt) {
  const auto channel = pair_.peer->connect(0, tcp::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  *region.tail(shm::Side::guest) = 7;
  shm::LaneWriter writer(region.ring(shm::Side::maker), region.tail(shm::Side::maker));
  Transport& links = *pair_.endpoint.links;
  const auto frame = pattern(1000, 2);
  std::uint64_t replies = 0;
  const Failure failure = test::failure_seen(links, [&] {
    while (replies < 2 * shm::kRingBytes / shm::kLineBytes && writer.push({{1, 1}, 1000}, frame)) {
      links.receive(1, {1, 1}, into_, 1);
      for (bool arrived = false; !arrived;)
        for (const Event& event : links.poll(in(30s), {})) arrived = arrived || event.arrival;
      links.reply(1, {1, {1, 1}, frame, 2});
      std::atomic_ref(*region.replies(shm::Side::maker)).store(++replies);
    }
  });
  EXPECT_EQ(failure.kind, "Corrupt") << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
  EXPECT_EQ(replies, shm::kRingBytes / shm::kLineBytes) << "the last of them did not leave";
}

TEST_F(Neighbour, ThatCannotBeReachedIsLost) {
  EXPECT_EQ(test::failure_seen(*pair_.endpoint.links,
                               [&] {
                                 pair_.control = tcp::Channel();
                                 pair_.endpoint.links->receive(1, {1, 1}, into_, 1);
                               })
                .kind,
            "PeerLost");
}

TEST_F(Neighbour, AtTheWrongDoorIsTurnedAway) {
  const tcp::Hello hello{
      .version = {}, .purpose = tcp::Purpose::data, .group = pair_.peer->group(), .from = 1, .to = 0};
  auto handshake = tcp::Handshake::call(tcp::Channel(pair_.peer->knock(0)), hello, {});
  while (handshake.advance() == tcp::Handshake::State::reading) test::await_readable(handshake.channel().socket());
  ASSERT_EQ(handshake.state(), tcp::Handshake::State::done);
  test::await_readable(handshake.channel().socket());
  std::byte byte;
  tcp::Channel channel = handshake.take();
  EXPECT_EQ(channel.read(std::span(&byte, 1)).outcome, tcp::Moved::Outcome::closed);
}

TEST_F(Neighbour, OfAnotherUserIsTurnedAwayBeforeItIsHeard) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    const tcp::Descriptor socket = pair_.peer->knock(0);
    test::await_readable(socket);
    char byte = 0;
    ::_exit(::recv(socket.number(), &byte, 1, MSG_DONTWAIT) == 0 ? 0 : 1);  // closed, without a word
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Handover, TakesExactlyOneDescriptor) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const tcp::Descriptor a(ends[0]), b(ends[1]);
  EXPECT_FALSE(shm::take(b)) << "nothing has come";
  const shm::Region region = shm::Region::make();
  ASSERT_TRUE(shm::give(a, region.memory()));
  const auto taken = shm::take(b);
  ASSERT_TRUE(taken);
  EXPECT_NO_THROW(std::ignore = shm::Region::adopt(tcp::Descriptor(::dup(taken->number()))));
}

}  // namespace
}  // namespace syncopate::transport
