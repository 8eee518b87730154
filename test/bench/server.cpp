// The arithmetic of `syncopate bench server`: the bound of a port, rounds of several runs, and rows that are damaged.
#include <gtest/gtest.h>

#include "bench/server/rows.hpp"
#include "contender/push_pull.hpp"
#include "syncopate/error.hpp"

namespace syncopate::test {
namespace {

using tools::bench::push_pull_bound;
using tools::bench::ServerRows;

constexpr std::uint64_t kBytes = 100 << 20;

TEST(PushPullBound, OfFourWorkersAndServersOnFourHostsIsOneAndAHalfVectors) {
  EXPECT_NEAR(push_pull_bound({.workers = 4, .servers = 4, .bits_per_s = 1e9}, kBytes), 1.258, 0.001);
}

TEST(PushPullBound, IsThatOfTheHostWithMostServers) {
  // Two hosts, one server: the server's port carries the other worker's vector and returns it, and its own none.
  EXPECT_DOUBLE_EQ(push_pull_bound({.workers = 2, .servers = 1, .bits_per_s = 8}, 100), 100);
  // Two hosts, three servers, two of them on host 0: each way 1/3 of its worker's, 2/3 for the other.
  EXPECT_DOUBLE_EQ(push_pull_bound({.workers = 2, .servers = 3, .bits_per_s = 8}, 300), 300);
  // Three hosts, one server: two workers' vectors enter.
  EXPECT_DOUBLE_EQ(push_pull_bound({.workers = 3, .servers = 1, .bits_per_s = 8}, 100), 200);
}

TEST(PushPullBound, IsNoneWhereNothingLeavesAHostOrNoRateIsKnown) {
  EXPECT_EQ(push_pull_bound({.workers = 1, .servers = 3, .bits_per_s = 1e9}, kBytes), 0);
  EXPECT_EQ(push_pull_bound({.workers = 4, .servers = 4, .bits_per_s = 0}, kBytes), 0);
}

std::string raw(const char* contender, const char* seconds, bool correct) {
  return std::string(R"({"contender":")") + contender + R"(","bytes":100,"block_seconds":)" + seconds +
         R"(,"block_cpu_seconds":[2],"correct":)" + (correct ? "true}" : "false}");
}

TEST(ServerRows, GatherRoundsOfAllRunsAndOneWrongAnswerIsWrong) {
  ServerRows rows({.workers = 2, .servers = 1, .bits_per_s = 8});
  EXPECT_TRUE(rows.take(raw("syncopate", "[150,100]", true)));
  EXPECT_TRUE(rows.take(raw("grpc", "[300]", true)));
  EXPECT_TRUE(rows.all_correct());
  EXPECT_TRUE(rows.take(raw("syncopate", "[160]", false)));
  EXPECT_FALSE(rows.all_correct());
  const auto json = rows.json();
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0].at("contender"), "syncopate");
  EXPECT_EQ(json[0].at("push_pull_seconds").at("median"), 150);
  EXPECT_EQ(json[0].at("push_pull_seconds").at("n"), 3);
  EXPECT_EQ(json[0].at("ratio"), 1.5);
  EXPECT_EQ(json[0].at("correct"), false);
  EXPECT_EQ(json[1].at("correct"), true);
}

TEST(ServerRows, RefuseDamagedRowsAndPassByOtherLines) {
  ServerRows rows({});
  EXPECT_FALSE(rows.take("server 0 done"));
  EXPECT_FALSE(rows.take("{\"event\":\"begin\"}"));
  EXPECT_THROW(static_cast<void>(rows.take(R"({"block_seconds":[1]})")), Corrupt);
  EXPECT_THROW(static_cast<void>(rows.take(raw("grpc", "[]", true))), Corrupt);
  EXPECT_TRUE(rows.empty());
}

TEST(Updates, WeightsThatMissAWorkerARoundOrAnElementsPlaceAreWrong) {
  contender::Updates updates(3);
  std::vector<float> weights(10'000, 0.0F), update(weights.size());
  for (int worker = 0; worker < 3; ++worker) {
    updates.write(update, worker, 5);
    EXPECT_TRUE(updates.are_updates(update, worker, 5));
    EXPECT_FALSE(updates.are_updates(update, worker, 6));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= update[i] / 3;
  }
  std::vector<float> without = weights;  // the last worker's update
  for (std::size_t i = 0; i < weights.size(); ++i) without[i] += update[i] / 3;
  updates.descend(5);
  EXPECT_TRUE(updates.are_weights(weights));
  EXPECT_FALSE(updates.are_weights(without));
  std::swap(weights[5'000], weights[5'001]);
  EXPECT_FALSE(updates.are_weights(weights));
  std::swap(weights[5'000], weights[5'001]);
  updates.descend(6);
  EXPECT_FALSE(updates.are_weights(weights));
}

}  // namespace
}  // namespace syncopate::test
