// The group: order of operations, wrong use, disagreement, deadlines, and what stays after an error.
#include "syncopate/group.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(Group, OfOneRankNeedsNobody) {
  test::on_groups(1, [](Group& group) {
    std::vector<float> values{1, 2, 3};
    allreduce(group, std::span(values), {.op = ReduceOp::average});
    barrier(group);
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
  });
}

TEST(Group, CarriesStartedWorkOutInTheOrderOfTheCalls) {
  test::on_groups(3, [](Group& group) {
    std::vector<std::int64_t> a(1000, group.rank()), b(5, 1), c(3000, 2);
    Work first = start(group, Collective::allreduce, std::span(a));
    Work second = start(group, Collective::allreduce, std::span(b), {.op = ReduceOp::max});
    allreduce(group, std::span(c));  // behind the two
    EXPECT_TRUE(first.ready());
    EXPECT_TRUE(second.ready());
    EXPECT_EQ(a[999], 3);
    EXPECT_EQ(b[4], 1);
    EXPECT_EQ(c[0], 6);
    first.wait();
    second.wait();
  });
}

TEST(Group, CountsTrafficOfARing) {
  test::on_groups(4, [](Group& group) {
    std::vector<float> values(4096);
    allreduce(group, std::span(values), {.algorithm = "ring"});
    barrier(group);
    EXPECT_GE(group.traffic().sent_bytes, 2U * 3 / 4 * 4096 * 4);
  });
}

TEST(Deadline, NamesTheRankThatDidNotCome) {
  auto groups = Group::threads(3, {.timeout = 200ms});
  const auto failures = test::outcomes(3, [&](int rank) {
    std::vector<float> values(1000);
    if (rank != 2) allreduce(*groups[static_cast<std::size_t>(rank)], std::span(values), {.name = "conv1"});
  });
  for (const int rank : {0, 1}) {
    test::expect_thrown<Timeout>(failures[static_cast<std::size_t>(rank)], {"rank 2 has not begun it", "conv1"});
  }
}

TEST(Deadline, CanChangeAfterJoining) {
  auto groups = Group::threads(2, {.timeout = 20s});
  std::vector<float> values(10);
  EXPECT_THROW(groups[0]->set_timeout(0ms), Misuse);
  groups[0]->set_timeout(100ms);
  const auto waits_alone = [&] { allreduce(*groups[0], std::span(values)); };
  test::expect_thrown<Timeout>(waits_alone, {"within the timeout of 0.1 s"});
  groups = Group::threads(2, {.timeout = 20s});
  groups[0]->set_timeout(100ms);
  const auto hears_nothing = [&] { recv(*groups[0], 1, std::span(values)); };
  test::expect_thrown<Timeout>(hears_nothing, {"within the timeout of 0.1 s"});
}

TEST(Abort, ReachesRanksThatWait) {
  auto groups = Group::threads(4);
  const auto failures = test::outcomes(4, [&](int rank) {
    Group& group = *groups[static_cast<std::size_t>(rank)];
    if (rank == 3) return group.abort("the data ran out", "fc7");
    std::vector<float> values(100000);
    allreduce(group, std::span(values));
  });
  for (const int rank : {0, 1, 2}) {
    test::expect_thrown<RemoteFailure>(failures[static_cast<std::size_t>(rank)], {"the data ran out"});
  }
}

// Memory is the caller's again when the error arrives; under a sanitizer a late reader would be seen.
TEST(Abort, LeavesNoRankReadingAnothersMemory) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    auto groups = Group::threads(4);
    test::outcomes(4, [&](int rank) {
      Group& group = *groups[static_cast<std::size_t>(rank)];
      auto values = std::make_unique<std::vector<float>>(200000, 1.0F);
      for (int call = 0; call < 5; ++call) {
        if (rank == 3 && call == 2) return group.abort("enough");
        allreduce(group, std::span(*values));
      }
    });
  }
}

}  // namespace
}  // namespace syncopate
