// Policies: every entry makes legal partitions, and each makes the one its description promises.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "schedule/dispatch.hpp"
#include "schedule/policy.hpp"
#include "syncopate/error.hpp"

namespace syncopate::schedule {
namespace {

Timeline timeline_of(const std::vector<std::size_t>& bytes) {
  Timeline timeline;
  for (const std::size_t size : bytes) timeline.layers.push_back({"layer", size, DType::f32, 0});
  return timeline;
}

Partition apply(std::string_view policy, const std::vector<std::size_t>& bytes, std::size_t fusion_bytes = 10) {
  return policy_named(policy).partition(timeline_of(bytes), {fusion_bytes});
}

TEST(Policy, EveryEntryPutsEveryLayerInExactlyOneBucket) {
  EXPECT_TRUE(rc::check([] {
    const auto layers = *rc::gen::inRange<std::size_t>(1, 60);
    const auto bytes = *rc::gen::container<std::vector<std::size_t>>(layers, rc::gen::inRange<std::size_t>(1, 1000));
    const auto limit = *rc::gen::inRange<std::size_t>(1, 3000);
    for (const Policy* policy : policies())
      RC_ASSERT(illegal(policy->partition(timeline_of(bytes), {limit}), layers).empty());
  }));
}

TEST(Policy, WfbpSendsEveryLayerByItself) { EXPECT_EQ(apply("wfbp", {1, 2, 3}), (Partition{{2, 2}, {1, 1}, {0, 0}})); }

TEST(Policy, SingleSendsEverythingAtOnce) { EXPECT_EQ(apply("single", {1, 2, 3}), (Partition{{0, 2}})); }

TEST(Policy, FusionFillsBucketsFromTheLastLayerAndKeepsTheLimit) {
  EXPECT_EQ(apply("fusion", {4, 4, 4, 4, 4}), (Partition{{3, 4}, {1, 2}, {0, 0}}));
  EXPECT_EQ(apply("fusion", {4, 40, 4}), (Partition{{2, 2}, {1, 1}, {0, 0}}));
  EXPECT_EQ(apply("fusion", {5, 5}), (Partition{{0, 1}}));
}

TEST(Policy, AnUnknownNameIsMisuseThatListsTheShelf) {
  try {
    static_cast<void>(policy_named("best"));
    FAIL() << "no error";
  } catch (const Misuse& misuse) {
    EXPECT_NE(std::string(misuse.what()).find("fusion, single, wfbp"), std::string::npos) << misuse.what();
  }
}

TEST(Partition, IsSplitWhereTheTypeChanges) {
  Timeline timeline = timeline_of({1, 1, 1, 1});
  timeline.layers[1].dtype = timeline.layers[2].dtype = DType::f16;
  EXPECT_EQ(split_by_type({{0, 3}}, timeline), (Partition{{3, 3}, {1, 2}, {0, 0}}));
}

TEST(Partition, ThatLeavesALayerOutIsIllegal) {
  EXPECT_NE(illegal({{2, 2}, {0, 0}}, 3), "");
  EXPECT_NE(illegal({{1, 2}}, 3), "");
  EXPECT_NE(illegal({{0, 1}, {1, 2}}, 3), "");
  EXPECT_EQ(illegal({{2, 2}, {0, 1}}, 3), "");
}

TEST(Dispatch, SendsABucketWhenItsLastGradientIsReadyAndNotBeforeItsTurn) {
  Dispatch dispatch({{2, 3}, {0, 1}}, 4);
  EXPECT_TRUE(dispatch.ready(0));
  EXPECT_TRUE(dispatch.ready(1));
  EXPECT_EQ(dispatch.next(), std::nullopt) << "the first bucket has not gone yet";
  EXPECT_TRUE(dispatch.ready(2));
  EXPECT_EQ(dispatch.missing(), std::vector<std::size_t>{3});
  EXPECT_EQ(dispatch.next(), std::nullopt);
  EXPECT_TRUE(dispatch.ready(3));
  EXPECT_FALSE(dispatch.ready(3)) << "twice";
  EXPECT_EQ(dispatch.next(), 0U);
  EXPECT_EQ(dispatch.next(), 1U);
  EXPECT_EQ(dispatch.next(), std::nullopt);
  EXPECT_TRUE(dispatch.all_sent());
  dispatch.restart();
  EXPECT_EQ(dispatch.missing().size(), 4U);
}

}  // namespace
}  // namespace syncopate::schedule
