// A worker's pushes of rows that are on their way: their acknowledgement, their repetition, and their memory.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/rows/worker_rows.hpp"

namespace syncopate::server {
namespace {

/// One worker's pushes, whose acknowledgements the test writes.
class OfPushes : public testing::Test {
 protected:
  void push(std::size_t table) { rows_.push(table, std::vector<std::uint64_t>{7}, std::vector<float>{1}, 1); }
  void acknowledge(std::uint32_t table, std::uint64_t number) {
    rows_.receive(0, PushedRows{.table = table, .number = number});
  }
  using Numbers = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

  Numbers sent_;  ///< table and number
  WorkerRows rows_{{.servers = 1, .rows = {{.name = "a", .width = 1}, {.name = "b", .width = 1}}},
                   [this](const Request& request) {
                     const auto& push = std::get<PushRows>(request.message);
                     sent_.emplace_back(push.table, push.number);
                   }};
};

TEST_F(OfPushes, ARepetitionHasTheOrderOfTheCallsThoughTablesAreAcknowledgedApart) {
  for (const std::size_t table : {1, 0, 1, 1, 0, 1, 0}) push(table);
  acknowledge(1, 2);
  acknowledge(1, 1);  // answers to a repeated push come again
  acknowledge(0, 1);
  sent_.clear();
  rows_.repeat(0);
  EXPECT_EQ(sent_, (Numbers{{1, 3}, {0, 2}, {1, 4}, {0, 3}}));
  acknowledge(0, 3);
  EXPECT_FALSE(rows_.is_acknowledged());
  acknowledge(1, 4);
  EXPECT_TRUE(rows_.is_acknowledged());
}

/// If each acknowledgement read all pushes on their way, this would exceed the time limit of a test.
TEST_F(OfPushes, AcknowledgementsOfManyReadOnlyThoseTheyEnd) {
  constexpr std::uint64_t kMany = 300'000;
  for (std::uint64_t i = 0; i < kMany; ++i) push(i % 2);
  for (std::uint64_t i = 0; i < kMany; ++i) acknowledge(1 - i % 2, 1 + i / 2);
  EXPECT_TRUE(rows_.is_acknowledged());
}

TEST_F(OfPushes, SmallOnesOnTheirWayTakeLimitedMemory) {
  std::size_t count = 0;
  for (; rows_.has_room() && count < 1'000'000; ++count) push(0);
  EXPECT_LE(count * sizeof(RowPush), std::size_t{32} << 20);
}

}  // namespace
}  // namespace syncopate::server
