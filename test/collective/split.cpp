// Sub-groups: who is in which, in what order, and that they do not disturb each other.
#include <gtest/gtest.h>

#include <functional>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(Split, PartsByColourAndOrdersByKeyThenRank) {
  test::on_every_transport(5, [](Group& group) {
    const auto part = group.split(group.rank() % 2, -group.rank());  // backwards
    ASSERT_TRUE(part);
    const int members = group.rank() % 2 == 0 ? 3 : 2;
    EXPECT_EQ(part->size(), members);
    EXPECT_EQ(part->rank(), members - 1 - group.rank() / 2);
    std::vector<std::int64_t> values(1000, group.rank());
    allreduce(*part, std::span(values));
    EXPECT_EQ(values[999], group.rank() % 2 == 0 ? 0 + 2 + 4 : 1 + 3);
    const auto same = group.split(0, 7);
    EXPECT_EQ(same->rank(), group.rank()) << "equal keys keep the order";
  });
}

TEST(Split, LeavesOutWhoGivesANegativeColour) {
  test::on_every_transport(3, [](Group& group) {
    const auto part = group.split(group.rank() == 1 ? -1 : 4, 0);
    EXPECT_EQ(part == nullptr, group.rank() == 1);
    if (part) {
      EXPECT_EQ(part->size(), 2);
      barrier(*part);
    }
    barrier(group);
  });
}

TEST(Split, MakesGroupsOfOneRank) {
  test::on_every_transport(2, [](Group& group) {
    const auto alone = group.split(group.rank(), 0);
    EXPECT_EQ(alone->size(), 1);
    float value = 3;
    allreduce(*alone, std::span(&value, 1));
    EXPECT_EQ(value, 3);
  });
}

TEST(Split, GroupsRunAtTheSameTimeAndDoNotMix) {
  test::on_every_transport(4, [](Group& group) {
    const auto row = group.split(group.rank() / 2, 0), column = group.split(group.rank() % 2, 0);
    std::vector<std::int32_t> all(20000, 1), of_row(30000, group.rank()), of_column(10, group.rank());
    for (int round = 0; round < 5; ++round) {
      Work first = start(group, Collective::allreduce, std::span(all));
      Work second = start(*row, Collective::allreduce, std::span(of_row), {.op = ReduceOp::max});
      allreduce(*column, std::span(of_column), {.op = ReduceOp::max});
      second.wait();
      first.wait();
    }
    EXPECT_EQ(all[0], 4 * 4 * 4 * 4 * 4);
    EXPECT_EQ(of_row[29999], group.rank() / 2 * 2 + 1);
    EXPECT_EQ(of_column[9], group.rank() % 2 + 2);
  });
}

TEST(Split, ASubGroupCanBeSplitAgainAndOutliveItsParent) {
  test::on_every_transport(4, [](Group& group) {
    const auto half = group.split(group.rank() / 2, 0);
    std::unique_ptr<Group> pair;
    {
      const auto again = half->split(0, -half->rank());
      pair = again->split(0, 0);
    }
    EXPECT_EQ(pair->rank(), 1 - half->rank());
    barrier(*pair);
  });
}

TEST(Split, HasTheTimeoutThatItsParentHasThen) {
  auto groups = Group::threads(2, {.timeout = 20s});
  std::vector<std::unique_ptr<Group>> parts(2);
  test::on_ranks(2, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    groups[i]->set_timeout(2s);
    parts[i] = groups[i]->split(0, 0);
  });
  float value = 0;
  test::expect_thrown<Timeout>([&] { recv(*parts[0], 1, std::span(&value, 1)); }, {"within the timeout of 2.0 s"});
}

TEST(Split, AFailureStaysInItsGroup) {
  test::on_every_transport(2,
                           [](Group& group) {
                             const auto part = group.split(0, 0);
                             std::vector<float> values(group.rank() == 0 ? 100 : 200);
                             EXPECT_THROW(
                                 {
                                   allreduce(*part, std::span(values));
                                   barrier(*part);
                                 },
                                 Mismatch);
                             std::int32_t one = 1;
                             allreduce(group, std::span(&one, 1));
                             EXPECT_EQ(one, 2);
                           },
                           {.timeout = 20s});
}

/// Rank 1 leaves a sub-group in which rank 0 waits or is about to.
void leave_during(Group& group, const std::function<void(Group&)>& call) {
  auto part = group.split(0, 0);
  barrier(*part);
  if (group.rank() == 0) {
    EXPECT_THROW(call(*part), PeerLost);
  }
  part.reset();
  barrier(group);
}

TEST(Split, ARankThatLeavesIsLostToThoseThatNeedIt) {
  std::vector<float> values(1000);
  test::on_every_transport(
      2, [&](Group& group) { leave_during(group, [&](Group& part) { allreduce(part, std::span(values)); }); },
      {.timeout = 10s});
  const std::function<void(Group&)> others[] = {
      [](Group& part) { barrier(part, {.scope = Scope::host}); },
      [&](Group& part) { recv(part, 1, std::span(values)); },
      [&](Group& part) { send(part, 1, std::span(values)); },
  };
  for (const auto& call : others)
    test::on_groups(2, [&](Group& group) { leave_during(group, call); }, {.timeout = 10s});
}

TEST(Split, ThatNotEveryRankCallsIsAMismatch) {
  auto groups = Group::threads(3, {.timeout = 20s});
  const auto failures = test::outcomes(3, [&](int rank) {
    Group& group = *groups[static_cast<std::size_t>(rank)];
    if (rank == 1) return barrier(group);
    static_cast<void>(group.split(0, 0));
  });
  for (const std::exception_ptr& failure : failures) {
    ASSERT_TRUE(failure);
    EXPECT_THROW(std::rethrow_exception(failure), Mismatch);
  }
}

}  // namespace
}  // namespace syncopate
