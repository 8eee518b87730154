// The state: first failure wins, operations are compared by their chained hash, laggards and leavers are named.
#include "transport/membership/group_state.hpp"

#include <gtest/gtest.h>

namespace syncopate::transport::membership {
namespace {

OperationRecord record(std::uint64_t number, std::uint64_t signature, std::string text = "op") {
  return {number, signature, std::move(text)};
}

TEST(GroupState, TheFirstFailureStays) {
  GroupState state(0);
  EXPECT_FALSE(state.failed());
  EXPECT_TRUE(state.decide({ErrorKind::peer_lost, "first", {}}));
  EXPECT_FALSE(state.decide({ErrorKind::timeout, "second", {}}));
  EXPECT_TRUE(state.failed());
  EXPECT_EQ(state.failure()->message, "first");
}

TEST(GroupState, EqualOperationsAgree) {
  GroupState a(0), b(1);
  for (std::uint64_t n = 1; n <= 10'000; ++n) {
    EXPECT_FALSE(a.began(record(n, n * 7)));
    EXPECT_FALSE(b.began(record(n, n * 7)));
    if (n % 1000 == 0) {
      EXPECT_FALSE(a.receive(1, b.heartbeat_for(0)));
    }
  }
}

TEST(GroupState, ADifferentOperationIsAMismatchThatNamesBoth) {
  GroupState a(0), b(1);
  std::ignore = a.began(record(1, 5, "allreduce x"));
  std::ignore = b.began(record(1, 6, "broadcast y"));
  const auto wrong = a.receive(1, b.heartbeat_for(0));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kind, ErrorKind::mismatch);
  EXPECT_NE(wrong->message.find("rank 0 called allreduce x; rank 1 called broadcast y"), std::string::npos)
      << wrong->message;
  EXPECT_EQ(wrong->where.peer, 1);
}

TEST(GroupState, AnEarlierDifferenceIsNotForgotten) {
  GroupState a(0), b(1);
  std::ignore = a.began(record(1, 5));
  std::ignore = b.began(record(1, 6));
  std::ignore = a.began(record(2, 8));
  std::ignore = b.began(record(2, 8));
  EXPECT_TRUE(a.receive(1, b.heartbeat_for(0)));
}

TEST(GroupState, ANeighbourAheadIsComparedWhenThisRankArrives) {
  GroupState a(0), b(1);
  std::ignore = b.began(record(1, 6, "broadcast"));
  EXPECT_FALSE(a.receive(1, b.heartbeat_for(0)));
  EXPECT_FALSE(a.compare());
  std::ignore = a.began(record(1, 5, "allreduce"));
  EXPECT_TRUE(a.compare());
}

TEST(GroupState, TextsAreRememberedForAWhileOnly) {
  GroupState state(0);
  const std::uint64_t last = GroupState::kRemembered + 10;
  for (std::uint64_t n = 1; n <= last; ++n) std::ignore = state.began(record(n, n, "op " + std::to_string(n)));
  EXPECT_EQ(state.text_of(last), "op " + std::to_string(last));
  EXPECT_EQ(state.text_of(last - GroupState::kRemembered), "");
  EXPECT_EQ(state.text_of(last + 1), "");
  EXPECT_EQ(state.text_of(0), "");
}

TEST(GroupState, LaggardsBehindANeighbourAreNamed) {
  GroupState root(0), left(1), right(2);
  for (std::uint64_t n = 1; n <= 5; ++n) std::ignore = root.began(record(n, n));
  for (std::uint64_t n = 1; n <= 5; ++n) std::ignore = left.began(record(n, n));
  for (std::uint64_t n = 1; n <= 2; ++n) std::ignore = right.began(record(n, n, "reduce"));
  std::ignore = root.receive(2, right.heartbeat_for(0));
  std::ignore = left.receive(0, root.heartbeat_for(1));
  EXPECT_EQ(left.laggards(5), "rank 2 is at operation 2 (reduce)");
  EXPECT_EQ(left.laggards(2), "");
  std::ignore = right.receive(0, root.heartbeat_for(2));
  EXPECT_EQ(right.laggards(3), "") << "a rank gets no report about itself";
}

TEST(GroupState, ALeaverIsNoLaggardWhereItsLastHeartbeatWas) {
  GroupState state(0), gone(1);
  std::ignore = gone.began(record(1, 1));
  ASSERT_FALSE(state.receive(1, gone.heartbeat_for(0)));
  for (std::uint64_t n = 1; n <= 3; ++n) std::ignore = state.began(record(n, n));
  ASSERT_EQ(state.laggards(3), "rank 1 is at operation 1 (op)");
  ASSERT_FALSE(state.left(1, 3));
  EXPECT_EQ(state.laggards(3), "");
  EXPECT_EQ(state.heartbeat_for(2).behind.number, 3U);
}

TEST(GroupState, ALeaverBreaksOnlyWhatItDidNotBegin) {
  GroupState state(0);
  std::ignore = state.began(record(1, 1));
  EXPECT_FALSE(state.left(3, 1));
  EXPECT_TRUE(state.has_left(3));
  const auto broken = state.began(record(2, 2));
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->kind, ErrorKind::peer_lost);
  EXPECT_NE(broken->message.find("rank 3 left the group"), std::string::npos);
  EXPECT_TRUE(state.left(4, 1)) << "operation 2 runs without rank 4";
}

TEST(GroupState, WhatALeaverCalledLastIsComparedWhenThisRankArrives) {
  GroupState left(0), right(1);
  ASSERT_FALSE(right.began({1, 18, "a call that was refused"}));
  ASSERT_FALSE(left.receive(1, right.heartbeat_for(0)));
  ASSERT_FALSE(left.left(1, 1));
  const auto wrong = left.began({1, 17, "allreduce f32 x 9 sum"});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kind, ErrorKind::mismatch);
  EXPECT_EQ(wrong->where.peer, 1);
}

TEST(Failure, TravelsAsItsOwnKindOrAsRemoteFailure) {
  const Failure lost = failure_of(PeerLost("gone", {-1, 3, {}, {}}), 1);
  EXPECT_EQ(lost.kind, ErrorKind::peer_lost);
  EXPECT_EQ(lost.where.rank, 1);
  EXPECT_THROW(raise(lost), PeerLost);
  EXPECT_THROW(raise(failure_of(Mismatch("m"), 0)), Mismatch);
  EXPECT_THROW(raise(failure_of(Timeout("m"), 0)), Timeout);
  EXPECT_THROW(raise(failure_of(Corrupt("m"), 0)), Corrupt);
  EXPECT_THROW(raise(failure_of(SystemFailure("m"), 0)), SystemFailure);
  EXPECT_THROW(raise(failure_of(Misuse("m"), 0)), RemoteFailure);
  EXPECT_THROW(raise(failure_of(std::runtime_error("boom"), 2)), RemoteFailure);
  EXPECT_EQ(failure_of(std::runtime_error("boom"), 2).message, "rank 2 failed: boom");
}

}  // namespace
}  // namespace syncopate::transport::membership
