// Planning at run time, on a clock that the test moves: one partition on all ranks, which follows drift alone.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ranks.hpp"
#include "schedule/policy.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

using namespace test;

/// Every thread but the one that made it sees the end of the backward pass that is under way: exchanges take no time,
/// whenever they run.
class VirtualClock {
 public:
  [[nodiscard]] std::function<double()> reader() {
    return [this, owner = std::this_thread::get_id()] {
      return std::this_thread::get_id() == owner ? now_s_ : backward_end_s_.load();
    };
  }
  void begin_backward(double seconds) { backward_end_s_ = now_s_ + seconds; }
  void pass(double seconds) { now_s_ += seconds; }

 private:
  double now_s_ = 0;
  std::atomic<double> backward_end_s_ = 0;
};

const std::vector<Gradient> kEven{{"a", 1000}, {"b", 1000}, {"c", 1000}, {"d", 1000}, {"e", 1000}, {"f", 1000}};
const ExchangeCost kCost{{{0, 1}, {4000, 5}}, 0};  // a second, and four more for each gradient

schedule::Partition expected_partition(const std::string& policy, double layer_s) {
  schedule::Timeline timeline;
  for (const Gradient& gradient : kEven) timeline.layers.push_back({gradient.name, 4000, layer_s});
  return schedule::policy_named(policy).partition(timeline, {.cost = schedule::Cost::affine(1, 1e-3)});
}

void step(Synchronizer& synchronizer, VirtualClock& clock, double layer_s) {
  clock.begin_backward(layer_s * static_cast<double>(kEven.size()));
  for (std::size_t i = kEven.size(); i-- > 0;) {
    clock.pass(layer_s);
    synchronizer.ready(i);
  }
  synchronizer.wait();
}

void expect_partition(const Synchronizer& synchronizer, const schedule::Partition& expected) {
  const std::vector<BucketInfo> buckets = synchronizer.buckets();
  ASSERT_EQ(buckets.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(buckets[k].first, expected[k].first);
    EXPECT_EQ(buckets[k].last, expected[k].last);
  }
}

TEST(Planning, UsesMeasuredTimesOfTheSlowestRankOnAllRanks) {
  for (const std::string policy : {"mg_wfbp", "exact_dp"}) {
    ASSERT_NE(expected_partition(policy, 6), expected_partition(policy, 0.01));
    on_groups(3, [&](Group& group) {
      VirtualClock clock;
      Synchronizer synchronizer(group, kEven, {.policy = policy, .cost = kCost, .clock_s = clock.reader()});
      for (int i = 0; i < 7; ++i) {
        step(synchronizer, clock, group.rank() == 2 ? 6 : 0.01);
        EXPECT_EQ(synchronizer.statistics().measuring, i < 5);
      }
      expect_partition(synchronizer, expected_partition(policy, 6));
    });
  }
}

// Rank 0 also decides the policy: ranks with another policy or cost still measure and plan with rank 0's.
TEST(Planning, OfRankZeroHoldsOnRanksThatWereToldSomethingElse) {
  for (const char* other : {"fusion", "online", "mg_wfbp"})
    on_groups(3, [&](Group& group) {
      VirtualClock clock;
      const bool first = group.rank() == 0;
      Synchronizer synchronizer(group, kEven,
                                {.policy = first ? "exact_dp" : other,
                                 .cost = first ? std::optional(kCost) : ExchangeCost{{{0, 500}}, 0},
                                 .check_every = first ? 4 : 0,
                                 .clock_s = clock.reader()});
      for (int i = 0; i < 20; ++i) step(synchronizer, clock, 6);
      expect_partition(synchronizer, expected_partition("exact_dp", 6));
    });
}

TEST(Planning, FollowsDriftOnAllRanksInTheSameStep) {
  std::vector<std::vector<std::size_t>> counts(3);
  on_groups(3, [&](Group& group) {
    VirtualClock clock;
    Synchronizer synchronizer(group, kEven,
                              {.policy = "exact_dp", .cost = kCost, .check_every = 8, .clock_s = clock.reader()});
    auto& mine = counts[static_cast<std::size_t>(group.rank())];
    const auto run = [&](int steps, double layer_s) {
      for (int i = 0; i < steps; ++i) {
        step(synchronizer, clock, layer_s);
        mine.push_back(synchronizer.buckets().size());
      }
    };
    run(30, 6);
    expect_partition(synchronizer, expected_partition("exact_dp", 6));
    EXPECT_FALSE(synchronizer.statistics().measuring);
    run(30, 0.01);
    expect_partition(synchronizer, expected_partition("exact_dp", 0.01));
  });
  EXPECT_EQ(counts[1], counts[0]);
  EXPECT_EQ(counts[2], counts[0]);
}

TEST(Planning, LeavesAPlanAloneThatStillHolds) {
  on_groups(2, [&](Group& group) {
    VirtualClock clock;
    Synchronizer synchronizer(group, kEven,
                              {.policy = "exact_dp", .cost = kCost, .check_every = 4, .clock_s = clock.reader()});
    for (int i = 0; i < 60; ++i) {
      step(synchronizer, clock, i % 2 == 0 ? 6 : 6.3);
      EXPECT_EQ(synchronizer.statistics().measuring, i < 5) << i;
    }
  });
}

}  // namespace
}  // namespace syncopate
