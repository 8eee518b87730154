// Matching: one rule describes a frame that does not fit its receive, on every kind of link.
#include "transport/matching.hpp"

#include <gtest/gtest.h>

#include "transport/membership/control.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport {
namespace {

using Kind = membership::LinkFailure::Kind;

constexpr FrameHead kExpected{{.operation = 7, .signature = 5}, 100};

void expect_misfit(const FrameHead& arrived, Kind kind, std::uint64_t operation) {
  const auto wrong = match(kExpected, arrived);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kind, kind);
  EXPECT_EQ(wrong->operation, operation);
}

TEST(Matching, TheFrameThatIsExpectedFits) { EXPECT_FALSE(match(kExpected, kExpected)); }

TEST(Matching, AnotherCallUnderTheSameNumberIsAnotherOperation) {
  expect_misfit({{7, 6}, 100}, Kind::other_operation, 7);
  expect_misfit({{7, 6}, 99}, Kind::other_operation, 7);
}

TEST(Matching, TheEarlierOfTwoOperationsIsTheOneInWhichRanksDiffer) {
  expect_misfit({{6, 5}, 100}, Kind::other_operation, 6);
  expect_misfit({{8, 5}, 100}, Kind::other_operation, 7);
}

TEST(Matching, NumbersOfMessagesAndOfOperationsAreNotCompared) {
  const std::uint64_t message = membership::message_number(1, 0, 3);
  expect_misfit({{message, 5}, 100}, Kind::other_operation, 7);
  const auto wrong = match({{message, 5}, 100}, {{7, 5}, 100});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->operation, message);
}

TEST(Matching, AnotherLengthIsNamedWithBothLengths) {
  expect_misfit({{7, 5}, 99}, Kind::other_length, 7);
  EXPECT_EQ(match(kExpected, {{7, 5}, 99})->reason, "sent 99 bytes where 100 were expected");
}

TEST(Matching, ThreadsAreToldOfAnotherLengthInTheSameWordsAsProcesses) {
  const std::vector<std::byte> sent(4);
  std::vector<std::byte> wanted(8);
  std::vector<Endpoint> ranks = join_threads(2, test::quiet_options());
  ranks[0].links->send({1, {1, 1}, sent, 1});
  const membership::Failure failure = test::failure_seen(*ranks[1].links, [&] {
    ranks[1].links->receive(0, {1, 1}, wanted, 2);
  });
  EXPECT_EQ(failure.kind, ErrorKind::mismatch);
  EXPECT_EQ(failure.message, "in operation 1 rank 0 sent 4 bytes where 8 were expected by rank 1");
}

}  // namespace
}  // namespace syncopate::transport
