// TCP control: every rank learns of every failure and its origin; silent and departed ranks are distinguished.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <latch>
#include <numeric>
#include <random>
#include <set>

#include "thrown.hpp"
#include "transport/membership/message.hpp"
#include "transport/membership/tree_edges.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport {
namespace {

using test::barrier;
using test::contains;
using test::failure_seen;
using test::quiet_options;
using test::with_ranks;
using namespace std::chrono_literals;

/// Ranks that are reachable from `rank` over edges that both ends have.
std::set<int> reached_from(int rank, int size, const std::set<int>& departed) {
  std::set<int> reached{rank};
  for (std::vector<int> front{rank}; !front.empty();) {
    const int at = front.back();
    front.pop_back();
    for (const int next : membership::neighbours_of(at, size, departed))
      if (membership::neighbours_of(next, size, departed).contains(at) && reached.insert(next).second)
        front.push_back(next);
  }
  return reached;
}

TEST(TreeShape, WhoeverIsThereFormsOneTree) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int size = std::uniform_int_distribution(1, 40)(random);
    std::set<int> departed, there;
    const int share = std::uniform_int_distribution(0, 9)(random);
    for (int rank = 0; rank < size; ++rank)
      (std::uniform_int_distribution(0, 9)(random) < share ? departed : there).insert(rank);
    if (there.empty()) continue;
    EXPECT_EQ(reached_from(*there.begin(), size, departed), there) << "of " << size << " ranks";
    std::size_t ends = 0;
    for (const int rank : there) ends += membership::neighbours_of(rank, size, departed).size();
    EXPECT_EQ(ends, 2 * (there.size() - 1));
  }
}

TEST(TreeShape, AnEdgeChangesOnlyWhenOneOfItsEndsLeaves) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    constexpr int kSize = 25;
    std::vector<int> leaving(kSize);
    std::iota(leaving.begin(), leaving.end(), 0);
    std::shuffle(leaving.begin(), leaving.end(), random);
    std::set<int> departed;
    for (const int next : leaving) {
      const std::set<int> before = departed;
      departed.insert(next);
      for (int rank = 0; rank < kSize; ++rank) {
        if (departed.contains(rank)) continue;
        auto kept = membership::neighbours_of(rank, kSize, before);
        kept.erase(next);
        EXPECT_TRUE(std::ranges::includes(membership::neighbours_of(rank, kSize, departed), kept)) << rank;
      }
    }
  }
}

TEST(ControlProtocol, AFailureReachesAllRanksAndNamesItsOrigin) {
  for (const int origin : {0, 4, 6}) {
    std::barrier joined(7);
    with_ranks(7, quiet_options(), [&](Endpoint& me) {
      joined.arrive_and_wait();
      if (me.rank == origin)
        me.control->report({ErrorKind::remote_failure, "the disk is full", {-1, -1, "load", "fc1"}});
      const membership::Failure seen = failure_seen(*me.links);
      EXPECT_EQ(seen.kind, ErrorKind::remote_failure) << "rank " << me.rank;
      EXPECT_EQ(seen.message, "the disk is full");
      EXPECT_EQ(seen.where.rank, origin);
      EXPECT_EQ(seen.where.tensor, "fc1");
      EXPECT_THROW(std::ignore = me.links->poll(test::in(1s), {}), RemoteFailure) << "and again on every call";
    });
  }
}

TEST(ControlProtocol, ItsLogNamesTheRankThatFailedFirst) {
  std::mutex lock;
  std::vector<std::string> lines;
  GroupOptions options = quiet_options();
  options.log = {LogLevel::info, [&](LogLevel, std::string_view line) {
                   const std::scoped_lock held(lock);
                   lines.emplace_back(line);
                 }};
  std::barrier joined(3);
  with_ranks(3, options, [&](Endpoint& me) {
    joined.arrive_and_wait();
    if (me.rank == 2) me.control->report({ErrorKind::remote_failure, "the disk is full", {2, -1, "", ""}});
    std::ignore = failure_seen(*me.links);
  });
  EXPECT_EQ(std::ranges::count(lines, "the first to fail was rank 2"), 3);
}

TEST(ControlProtocol, AFailureWhileOthersStillJoinReachesThemToo) {
  for (int round = 0; round < 20; ++round) {
    const auto outcomes = test::outcomes_of_ranks(7, quiet_options(), [](Endpoint& me) {
      if (me.rank == 0) me.control->report({ErrorKind::remote_failure, "the disk is full", {}});
      std::ignore = me.links->poll(test::in(30s), {});
    });
    for (const auto& outcome : outcomes) EXPECT_EQ(syncopate::test::thrown(outcome), "the disk is full");
  }
}

TEST(ControlProtocol, AFailureReportedJustBeforeLeavingStillArrives) {
  std::barrier joined(4);
  with_ranks(4, quiet_options(), [&](Endpoint& me) {
    joined.arrive_and_wait();
    if (me.rank == 3) return me.control->report({ErrorKind::remote_failure, "out of memory", {}});
    EXPECT_EQ(failure_seen(*me.links).message, "out of memory") << "rank " << me.rank;
  });
}

TEST(ControlProtocol, ASilentRankIsNamed) {
  GroupOptions options = quiet_options();
  options.silence = 400ms;
  test::Pair pair(options);
  const membership::Failure seen = failure_seen(*pair.endpoint.links);
  EXPECT_EQ(seen.kind, ErrorKind::peer_lost);
  EXPECT_TRUE(contains(seen.message, "rank 1 sent no heartbeat for 0.")) << seen.message;
  EXPECT_EQ(seen.where.peer, 1);
}

TEST(ControlProtocol, HeartbeatsKeepIdleRanksAlive) {
  GroupOptions options = quiet_options();
  options.silence = 1s;
  with_ranks(3, options, [](Endpoint& me) {
    EXPECT_NO_THROW(std::ignore = me.links->poll(test::in(1500ms), {}));
    EXPECT_FALSE(me.control->failed());
    barrier(me, 1);
  });
}

TEST(ControlProtocol, ARankWhoseConnectionEndsIsLostAtOnce) {
  test::Pair pair;
  pair.control.close();
  const membership::Failure seen = failure_seen(*pair.endpoint.links);
  EXPECT_EQ(seen.kind, ErrorKind::peer_lost);
  EXPECT_TRUE(contains(seen.message, "rank 1")) << seen.message;
}

TEST(ControlProtocol, NonsenseOnAControlConnectionIsCorrupt) {
  test::Pair pair;
  const std::uint32_t nonsense[] = {4, 0xffffffff};
  std::ignore = pair.control.write(std::as_bytes(std::span(nonsense)));
  EXPECT_EQ(failure_seen(*pair.endpoint.links).kind, ErrorKind::corrupt);
}

TEST(ControlProtocol, AMessageTooLongToBeOneIsRefusedBeforeItIsRead) {
  test::Pair pair;
  const std::uint32_t huge[] = {0x7fffffff, 0};
  std::ignore = pair.control.write(std::as_bytes(std::span(huge)));
  const membership::Failure seen = failure_seen(*pair.endpoint.links);
  EXPECT_EQ(seen.kind, ErrorKind::peer_lost);
  EXPECT_TRUE(contains(seen.message, "2147483647 bytes")) << seen.message;
}

TEST(ControlProtocol, UsingARankThatLeftIsALostPeer) {
  with_ranks(3, quiet_options(), [](Endpoint& me) {
    me.control->began({1, 1, "barrier"});
    if (me.rank == 1) return barrier(me, 1);
    const membership::Failure seen = failure_seen(*me.links, [&] {
      barrier(me, 1);
      me.control->began({2, 1, "allreduce"});
    });
    EXPECT_EQ(seen.kind, ErrorKind::peer_lost);
    EXPECT_TRUE(contains(seen.message, "rank 1 left the group")) << seen.message;
  });
}

TEST(ControlProtocol, WaitingForDataOfARankThatLeftIsALostPeer) {
  with_ranks(2, quiet_options(), [](Endpoint& me) {
    barrier(me, 1);
    if (me.rank == 1) return;
    std::byte into;
    const membership::Failure seen = failure_seen(*me.links, [&] { me.links->receive(1, {2, 1}, {&into, 1}, 1); });
    EXPECT_EQ(seen.kind, ErrorKind::peer_lost);
    EXPECT_TRUE(contains(seen.message, "rank 1 left the group")) << seen.message;
  });
}

TEST(ControlProtocol, LeavingInOrderIsNoFailure) {
  with_ranks(6, quiet_options(), [](Endpoint& me) {
    me.control->began({1, 1, "barrier"});
    barrier(me, 1);
    if (me.rank % 2 == 0) {
      EXPECT_TRUE(me.links->poll(test::in(100ms), {}).empty());
      EXPECT_FALSE(me.control->failed());
    }
  });
}

// Also while new edges are being made: the ranks wait only until they know which ranks have left.
TEST(ControlProtocol, AFailureCrossesWhereInnerRanksHaveLeft) {
  std::barrier all_know(4);
  with_ranks(7, quiet_options(), [&](Endpoint& me) {
    barrier(me, 1);
    if (me.rank < 3) return;
    while (!me.control->has_left(0) || !me.control->has_left(1) || !me.control->has_left(2))
      std::ignore = me.links->poll(test::in(1ms), {});
    all_know.arrive_and_wait();
    if (me.rank == 5) me.control->report({ErrorKind::remote_failure, "the disk is full", {}});
    EXPECT_EQ(failure_seen(*me.links).message, "the disk is full") << "rank " << me.rank;
  });
}

TEST(ControlProtocol, DifferentOperationsAreFoundWithoutAnyData) {
  GroupOptions options = quiet_options();
  options.silence = 2s;
  with_ranks(2, options, [](Endpoint& me) {
    me.control->began({1, 10, "allreduce f32 x 8 sum"});
    me.control->began(
        {2, me.rank == 0 ? 20u : 21u, me.rank == 0 ? "allreduce f32 x 9 sum" : "broadcast f32 x 9 root 0"});
    const membership::Failure seen = failure_seen(*me.links);
    EXPECT_EQ(seen.kind, ErrorKind::mismatch);
    EXPECT_TRUE(
        contains(seen.message, "number 2: rank 0 called allreduce f32 x 9 sum; rank 1 called broadcast f32 x 9 root 0"))
        << seen.message;
  });
}

TEST(ControlProtocol, AFrameThatDoesNotFitNamesBothOperationsOnEveryRank) {
  std::latch joined(5);  // a rank that still joins would get the failure there
  with_ranks(5, quiet_options(), [&](Endpoint& me) {
    joined.arrive_and_wait();
    // Ranks 3 and 4 are not neighbours in the tree: rank 1 relays the question.
    if (me.rank == 3) me.control->began({1, 30, "allreduce f32 x 3 sum 'a'"});
    if (me.rank == 4) me.control->began({1, 40, "allreduce f32 x 4 sum 'b'"});
    std::byte byte{1};
    const membership::Failure seen = failure_seen(*me.links, [&] {
      if (me.rank == 3) me.links->receive(4, {1, 30}, {&byte, 1}, 1);
      if (me.rank == 4) me.links->send({3, {1, 40}, {&byte, 1}, 1});
    });
    EXPECT_EQ(seen.kind, ErrorKind::mismatch) << seen.message;
    EXPECT_TRUE(
        contains(seen.message, "rank 3 called allreduce f32 x 3 sum 'a'; rank 4 called allreduce f32 x 4 sum 'b'"))
        << seen.message;
  });
}

TEST(ControlProtocol, LaggardsAreNamedAcrossTheTree) {
  GroupOptions options = quiet_options();
  options.silence = 2s;
  with_ranks(4, options, [](Endpoint& me) {
    const auto begin = [&](std::uint64_t number) { me.control->began({number, number, "allreduce"}); };
    begin(1);
    if (me.rank != 2) begin(2), begin(3);
    if (me.rank == 3) {  // rank 2 is three edges away
      const base::Time end = test::in(20s);
      while (!contains(me.control->laggards(3), "rank 2 is at operation 1") && std::chrono::steady_clock::now() < end)
        std::ignore = me.links->poll(test::in(20ms), {});
      EXPECT_TRUE(contains(me.control->laggards(3), "rank 2 is at operation 1 (allreduce)")) << me.control->laggards(3);
    }
    barrier(me, 9);
    if (me.rank == 2) begin(2), begin(3);  // a rank that leaves before others began counts as lost
  });
}

TEST(ControlProtocol, ADataConnectionThatIsRefusedIsALostPeer) {
  const auto board = connect::rendezvous::make_board();
  Endpoint me;
  std::jthread joining([&] {
    GroupOptions options = quiet_options();
    options.rank = 1;
    options.size = 2;
    const auto meeting = connect::rendezvous::in_memory(board);
    me = join(options, *meeting);
  });
  auto peer = std::make_unique<test::ScriptedPeer>(board, 0, 2);
  socket::Channel control = peer->answer();
  joining.join();
  peer->stop_listening();
  std::byte byte{1};
  const membership::Failure seen = failure_seen(*me.links, [&] { me.links->send({0, {1, 1}, {&byte, 1}, 1}); });
  EXPECT_EQ(seen.kind, ErrorKind::peer_lost);
  EXPECT_TRUE(contains(seen.message, "rank 0")) << seen.message;
  EXPECT_TRUE(contains(seen.message, "cannot be reached")) << seen.message;
}

}  // namespace
}  // namespace syncopate::transport
