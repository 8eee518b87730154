// Policies: each entry makes the partition that its description promises; laws of all: test/laws.
#include <gtest/gtest.h>

#include "schedule/dispatch.hpp"
#include "schedule/policy.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::schedule {
namespace {

Timeline timeline_of(const std::vector<std::size_t>& bytes) {
  Timeline timeline;
  for (const std::size_t size : bytes) timeline.layers.push_back({"layer", size, 0});
  return timeline;
}

Partition apply(std::string_view policy, const std::vector<std::size_t>& bytes, std::size_t fusion_bytes = 10) {
  return policy_named(policy).partition(timeline_of(bytes), {.fusion_bytes = fusion_bytes});
}

TEST(Policy, WfbpSendsEveryLayerByItself) { EXPECT_EQ(apply("wfbp", {1, 2, 3}), (Partition{{2, 2}, {1, 1}, {0, 0}})); }

TEST(Policy, SingleSendsEverythingAtOnce) { EXPECT_EQ(apply("single", {1, 2, 3}), (Partition{{0, 2}})); }

TEST(Policy, FusionFillsBucketsFromTheLastLayerAndKeepsTheLimit) {
  EXPECT_EQ(apply("fusion", {4, 4, 4, 4, 4}), (Partition{{3, 4}, {1, 2}, {0, 0}}));
  EXPECT_EQ(apply("fusion", {4, 40, 4}), (Partition{{2, 2}, {1, 1}, {0, 0}}));
  EXPECT_EQ(apply("fusion", {5, 5}), (Partition{{0, 1}}));
}

TEST(Policy, FusionAsInPyTorchHasASmallFirstBucketAndFillsPastItsSize) {
  const PolicyOptions options{.fusion_bytes = 10, .first_fusion_bytes = 3, .fuses_past = true};
  const auto apply_ddp = [&](const std::vector<std::size_t>& bytes) {
    return policy_named("fusion").partition(timeline_of(bytes), options);
  };
  EXPECT_EQ(apply_ddp({4, 4, 4, 4, 4, 4}), (Partition{{5, 5}, {2, 4}, {0, 1}}));
  EXPECT_EQ(apply_ddp({4, 40, 1, 1}), (Partition{{1, 3}, {0, 0}})) << "2 of 3 bytes: the large layer still joins";
}

TEST(Policy, ThatWeighsTimesIsMisuseWithoutThem) {
  for (const Policy* policy : policies()) {
    if (policy->needs == Needs::sizes) continue;
    Timeline timeline = timeline_of({1, 2, 3});
    EXPECT_THROW(policy->partition(timeline, {.cost = Cost::affine(1, 1)}), Misuse) << policy->name;
    timeline.layers[0].backward_s = 1;
    EXPECT_THROW(policy->partition(timeline, {}), Misuse) << policy->name;
    EXPECT_NO_THROW(policy->partition(timeline, {.cost = Cost::affine(1, 1)})) << policy->name;
  }
}

TEST(Policy, AnUnknownNameIsMisuseThatListsTheShelf) {
  test::expect_thrown<Misuse>([] { return policy_named("best"); }, {"exact_dp, fusion, mg_wfbp, online, single, wfbp"});
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

TEST(OnlineDispatch, SendsEverythingThatIsReadyAndNextInTheOrder) {
  OnlineDispatch dispatch(timeline_of({1, 1, 1, 1, 1}).layers.size());
  EXPECT_EQ(dispatch.decide(), std::nullopt);
  EXPECT_TRUE(dispatch.ready(3));
  EXPECT_EQ(dispatch.decide(), std::nullopt) << "layer 4 comes first";
  EXPECT_TRUE(dispatch.ready(4));
  EXPECT_FALSE(dispatch.ready(4)) << "twice";
  EXPECT_TRUE(dispatch.ready(1));
  EXPECT_EQ(dispatch.decide(), (Bucket{3, 4}));
  EXPECT_EQ(dispatch.decide(), std::nullopt);
  EXPECT_EQ(dispatch.missing(), (std::vector<std::size_t>{0, 2}));
  EXPECT_TRUE(dispatch.ready(2));
  EXPECT_EQ(dispatch.decide(), (Bucket{1, 2}));
  EXPECT_FALSE(dispatch.all_sent());
  EXPECT_TRUE(dispatch.ready(0));
  EXPECT_EQ(dispatch.decide(), (Bucket{0, 0}));
  EXPECT_TRUE(dispatch.all_sent());
  dispatch.restart();
  EXPECT_EQ(dispatch.missing().size(), 5U);
  EXPECT_EQ(dispatch.frontier(), 5U);
}

// Two ranks of different speed: each time the one that is less far decides, and what it offers is ready on both.
TEST(Fusion, FillsBucketsThatSuitModelAndRanksWhereNoSizeIsAsked) {
  const Timeline timeline = timeline_of(std::vector<std::size_t>(100, 1'000'000));
  const auto buckets = [&](int ranks) { return policy_named("fusion").partition(timeline, {.ranks = ranks}).size(); };
  EXPECT_EQ(buckets(4), 50U) << "2 MB each: the root of 100 MB * 4 * 10 kB";
  EXPECT_EQ(buckets(64), 13U) << "8 MB each";
  EXPECT_EQ(buckets(1), 100U);
}

TEST(OnlineDispatch, OfSeveralRanksTakesTheLeastOffer) {
  const Timeline timeline = timeline_of({1, 1, 1, 1});
  OnlineDispatch slow(4), fast(4);
  for (const std::size_t layer : {3, 2, 1, 0}) fast.ready(layer);
  EXPECT_EQ(slow.offer(), std::nullopt);
  slow.ready(3);
  ASSERT_EQ(slow.offer(), 3U);
  ASSERT_EQ(fast.offer(), 0U);
  EXPECT_EQ(slow.take(3), (Bucket{3, 3}));
  EXPECT_EQ(fast.take(3), (Bucket{3, 3}));
  for (const std::size_t layer : {2, 1, 0}) slow.ready(layer);
  ASSERT_EQ(slow.offer(), 0U);
  EXPECT_EQ(fast.take(0), (Bucket{0, 2}));
  EXPECT_EQ(slow.take(0), (Bucket{0, 2}));
  EXPECT_TRUE(fast.all_sent() && slow.all_sent());
}

}  // namespace
}  // namespace syncopate::schedule
