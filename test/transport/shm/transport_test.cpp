// Shared memory between ranks: which ranks share it, what a hostile peer reaches, and what a lost one leaves.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <numeric>

#include "transport/ranks.hpp"
#include "transport/shm/region.hpp"
#include "transport/shm/shared_memory.hpp"

namespace syncopate::transport {
namespace {

using test::finish;
using test::in;
using namespace std::chrono_literals;

GroupOptions options_for(TransportChoice transport) {
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

/// Every rank sends `bytes` to every rank and checks the arrivals.
void exchange(Endpoint& me, std::size_t bytes, std::uint64_t operation) {
  std::vector<std::vector<std::byte>> out, arrived(static_cast<std::size_t>(me.size), std::vector<std::byte>(bytes));
  for (int peer = 0; peer < me.size; ++peer) out.push_back(pattern(bytes, me.rank * 16 + peer));
  int posts = 0;
  for (int peer = 0; peer < me.size; ++peer) {
    if (peer == me.rank) continue;
    const auto at = static_cast<std::size_t>(peer);
    me.links->receive(peer, {operation, 1}, arrived[at], 2 * at);
    me.links->send({peer, {operation, 1}, out[at], 2 * at + 1});
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
  test::with_ranks(3, options_for(TransportChoice::shm), [](Endpoint& me) {
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
      5, options_for(TransportChoice::automatic),
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
      3, options_for(TransportChoice::automatic), [](Endpoint& me) { EXPECT_EQ(me.kind, "tcp"); },
      [](int rank) { return fmt::to_string(rank); });
}

TEST(ShmLinks, AskedForAcrossHostsAreMisuseOnEveryRank) {
  const auto failures = test::outcomes_of_ranks(
      3, options_for(TransportChoice::shm), [](Endpoint&) {}, [](int rank) { return rank == 2 ? "far" : "near"; });
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    EXPECT_THROW(std::rethrow_exception(failure), Misuse);
  }
}

TEST(ShmLinks, ArrivalsAreLentUntilTheyAreReleased) {
  test::with_ranks(2, options_for(TransportChoice::shm), [](Endpoint& me) {
    constexpr std::size_t kBytes = shm::kRingBytes / 16;
    constexpr std::uint64_t kFrames = 40;  // more than the ring holds
    std::vector<std::byte> memory(kBytes);
    if (me.rank == 0) {
      const auto data = pattern(kBytes, 3);
      for (std::uint64_t i = 0; i < kFrames; ++i) me.links->send({1, {1, 1}, data, i});
      return finish(*me.links, kFrames);
    }
    for (std::uint64_t i = 0; i < kFrames; ++i) me.links->receive(0, {1, 1}, memory, i);
    std::vector<Event> held;
    const auto take = [&] {
      for (const Event& event : me.links->poll(in(100ms), {})) held.push_back(event);
    };
    while (held.size() < 8) take();
    for (int i = 0; i < 3; ++i) take();
    ASSERT_LT(held.size(), kFrames) << "no frame was given back, so the ring is full";
    std::uint64_t seen = held.size();
    for (std::size_t i = held.size(); i-- > 0;) {  // in any order
      EXPECT_NE(held[i].bytes.data(), memory.data());
      EXPECT_EQ(held[i].bytes[777], pattern(kBytes, 3)[777]);
      me.links->release(held[i].token);
    }
    finish(*me.links, static_cast<int>(kFrames - seen));
  });
}

// The messages that open a link may arrive at any point of falling asleep; so may the first frame.
TEST(ShmLinks, OpenAtAnyMomentOfASleep) {
  for (int round = 0; round < 60; ++round)
    test::with_ranks(3, options_for(TransportChoice::shm), [&](Endpoint& me) {
      for (const base::Time begin = in(30us * round * me.rank); std::chrono::steady_clock::now() < begin;) {
      }
      exchange(me, 4, 1);
      exchange(me, 600, 2);
    });
}

TEST(ShmLinks, ARankThatLeavesWhileItIsNeededIsNamed) {
  const auto failures = test::outcomes_of_ranks(3, options_for(TransportChoice::shm), [](Endpoint& me) {
    exchange(me, 100, 1);
    if (me.rank == 2) return;
    std::byte byte;
    me.links->receive(2, {2, 1}, {&byte, 1}, 1);
    const membership::Failure failure = test::failure_seen(*me.links);
    EXPECT_EQ(failure.kind, ErrorKind::peer_lost) << failure.message;
    EXPECT_EQ(failure.where.peer, 2);
  });
  for (const auto& failure : failures) EXPECT_FALSE(failure);
}

TEST(ShmLinks, WhatALeavingRankHasSentStillArrives) {
  test::with_ranks(2, options_for(TransportChoice::shm), [](Endpoint& me) {
    exchange(me, 10, 1);
    const auto data = pattern(200'000, 9);
    if (me.rank == 1) {
      me.links->send({0, {2, 1}, data, 1});
      return finish(*me.links, 1);
    }
    std::vector<std::byte> got(data.size());
    me.links->receive(1, {2, 1}, got, 1);
    finish(*me.links, 1);
  });
}

TEST(ShmLinks, AnotherOperationOrLengthIsAMismatch) {
  for (const bool length : {false, true})
    test::with_ranks(2, options_for(TransportChoice::shm), [&](Endpoint& me) {
      me.control->began({1, 5, "something"});
      std::vector<std::byte> data(me.rank == 0 && length ? 900 : 1000);
      const membership::Failure failure = test::failure_seen(*me.links, [&] {
        if (me.rank == 0)
          me.links->send({1, {1, 5}, data, 1});
        else
          me.links->receive(0, {1, length ? 5U : 6U}, data, 1);
      });
      EXPECT_EQ(failure.kind, ErrorKind::mismatch) << failure.message;
    });
}

TEST(DescriptorPassing, TakesExactlyOneDescriptor) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const socket::Descriptor a(ends[0]), b(ends[1]);
  EXPECT_FALSE(shm::receive_descriptor(b)) << "nothing has arrived";
  const shm::Region region = shm::Region::make();
  ASSERT_TRUE(shm::send_descriptor(a, region.memory()));
  const auto taken = shm::receive_descriptor(b);
  ASSERT_TRUE(taken);
  EXPECT_NO_THROW(std::ignore = shm::Region::adopt(socket::Descriptor(::dup(taken->number()))));
}

}  // namespace
}  // namespace syncopate::transport
