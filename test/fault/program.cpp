// A program that fails: the other ranks learn at once which rank failed, and that its end was not in order.
#include <gtest/gtest.h>

#include "processes.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {
namespace {

constexpr int kRanks = 4;

class Program : public testing::TestWithParam<const char*> {};

void fail_on_rank_1(Group& group, int step) {
  static std::vector<float> gradient(1000, 1.0F);
  allreduce(group, std::span(gradient), {.op = ReduceOp::average, .name = "gradient"});
  if (group.rank() == 1 && step == 5) throw SystemFailure("image 17 cannot be read");
}

TEST_P(Program, ThatThrowsIsNamedByEveryOtherRank) {
  const test::Job job(kRanks, fail_on_rank_1, {.transport = GetParam()});
  for (int rank = 0; rank < kRanks; ++rank) {
    const test::Ending ending = job.ending_of(rank);
    if (rank == 1) {
      EXPECT_STREQ(ending.message, "image 17 cannot be read") << "its own error stays";
      continue;
    }
    EXPECT_STREQ(ending.kind, "RemoteFailure") << ending.message;
    EXPECT_EQ(ending.peer, 1) << ending.message;
    EXPECT_NE(std::string(ending.message).find("rank 1 gave up: its program threw an exception"), std::string::npos)
        << ending.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Program, testing::Values("tcp", "shm"),
                         [](const auto& transport) { return std::string(transport.param); });

}  // namespace
}  // namespace syncopate
