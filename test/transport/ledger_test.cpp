// The ledger: first failure wins, operations are compared by their chained hash, laggards and leavers are named.
#include "transport/tcp/ledger.hpp"

#include <gtest/gtest.h>

namespace syncopate::transport::tcp {
namespace {

OperationRecord record(std::uint64_t number, std::uint64_t signature, std::string text = "op") {
  return {number, signature, std::move(text)};
}

TEST(Ledger, TheFirstFailureStays) {
  Ledger ledger(0);
  EXPECT_FALSE(ledger.failed());
  EXPECT_TRUE(ledger.settle({"PeerLost", "first", {}}));
  EXPECT_FALSE(ledger.settle({"Timeout", "second", {}}));
  EXPECT_TRUE(ledger.failed());
  EXPECT_EQ(ledger.failure()->message, "first");
}

TEST(Ledger, EqualOperationsAgree) {
  Ledger a(0), b(1);
  for (std::uint64_t n = 1; n <= 10'000; ++n) {
    EXPECT_FALSE(a.began(record(n, n * 7)));
    EXPECT_FALSE(b.began(record(n, n * 7)));
    if (n % 1000 == 0) {
      EXPECT_FALSE(a.heard(1, b.heartbeat_for(0)));
    }
  }
}

TEST(Ledger, ADifferentOperationIsAMismatchThatNamesBoth) {
  Ledger a(0), b(1);
  std::ignore = a.began(record(1, 5, "allreduce x"));
  std::ignore = b.began(record(1, 6, "broadcast y"));
  const auto wrong = a.heard(1, b.heartbeat_for(0));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kind, "Mismatch");
  EXPECT_NE(wrong->message.find("rank 0 called allreduce x; rank 1 called broadcast y"), std::string::npos)
      << wrong->message;
  EXPECT_EQ(wrong->where.peer, 1);
}

TEST(Ledger, AnEarlierDifferenceIsNotForgotten) {
  Ledger a(0), b(1);
  std::ignore = a.began(record(1, 5));
  std::ignore = b.began(record(1, 6));
  std::ignore = a.began(record(2, 8));
  std::ignore = b.began(record(2, 8));
  EXPECT_TRUE(a.heard(1, b.heartbeat_for(0)));
}

TEST(Ledger, ANeighbourAheadIsComparedWhenThisRankArrives) {
  Ledger a(0), b(1);
  std::ignore = b.began(record(1, 6, "broadcast"));
  EXPECT_FALSE(a.heard(1, b.heartbeat_for(0)));
  EXPECT_FALSE(a.compare());
  std::ignore = a.began(record(1, 5, "allreduce"));
  EXPECT_TRUE(a.compare());
}

TEST(Ledger, TextsAreRememberedForAWhileOnly) {
  Ledger ledger(0);
  const std::uint64_t last = Ledger::kRemembered + 10;
  for (std::uint64_t n = 1; n <= last; ++n) std::ignore = ledger.began(record(n, n, "op " + std::to_string(n)));
  EXPECT_EQ(ledger.text_of(last), "op " + std::to_string(last));
  EXPECT_EQ(ledger.text_of(last - Ledger::kRemembered), "");
  EXPECT_EQ(ledger.text_of(last + 1), "");
  EXPECT_EQ(ledger.text_of(0), "");
}

TEST(Ledger, LaggardsBehindANeighbourAreNamed) {
  Ledger root(0), left(1), right(2);
  for (std::uint64_t n = 1; n <= 5; ++n) std::ignore = root.began(record(n, n));
  for (std::uint64_t n = 1; n <= 5; ++n) std::ignore = left.began(record(n, n));
  for (std::uint64_t n = 1; n <= 2; ++n) std::ignore = right.began(record(n, n, "reduce"));
  std::ignore = root.heard(2, right.heartbeat_for(0));
  std::ignore = left.heard(0, root.heartbeat_for(1));
  EXPECT_EQ(left.laggards(5), "rank 2 is at operation 2 (reduce)");
  EXPECT_EQ(left.laggards(2), "");
  std::ignore = right.heard(0, root.heartbeat_for(2));
  EXPECT_EQ(right.laggards(3), "") << "a rank does not hear of itself";
}

TEST(Ledger, ALeaverBreaksOnlyWhatItDidNotBegin) {
  Ledger ledger(0);
  std::ignore = ledger.began(record(1, 1));
  EXPECT_FALSE(ledger.left(3, 1));
  EXPECT_TRUE(ledger.has_left(3));
  const auto broken = ledger.began(record(2, 2));
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->kind, "PeerLost");
  EXPECT_NE(broken->message.find("rank 3 left the group"), std::string::npos);
  EXPECT_TRUE(ledger.left(4, 1)) << "operation 2 is under way without rank 4";
}

TEST(Failure, TravelsAsItsOwnKindOrAsRemoteFailure) {
  const Failure lost = failure_of(PeerLost("gone", {-1, 3, {}, {}}), 1);
  EXPECT_EQ(lost.kind, "PeerLost");
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
}  // namespace syncopate::transport::tcp
