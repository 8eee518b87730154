// Policies at run time: every one averages, ends in weights, hands out its buckets, and names what is missing.
#include <gtest/gtest.h>

#include "compress/codec.hpp"
#include "ranks.hpp"
#include "schedule/policy.hpp"
#include "sync/replica.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace test;

constexpr int kStepsToPlan = 9;  // of a policy that measures times and costs

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const schedule::Policy* policy : schedule::policies()) names.emplace_back(policy->name);
  return names;
}

float value(int rank, int step, std::size_t gradient, std::size_t i) {
  return static_cast<float>((rank + 1) * (step + 2)) * static_cast<float>(gradient + 1) * static_cast<float>(i % 11);
}

/// Writes gradient i and reports it.
void produce(Synchronizer& synchronizer, int rank, int step, std::size_t gradient) {
  const Buffer buffer = synchronizer.gradient(gradient);
  auto* elements = static_cast<float*>(buffer.data);
  for (std::size_t i = 0; i < buffer.count; ++i) elements[i] = value(rank, step, gradient, i);
  synchronizer.ready(gradient);
}

std::vector<float> all_gradients(const Synchronizer& synchronizer) {
  std::vector<float> all;
  for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient) {
    const Buffer buffer = synchronizer.gradient(gradient);
    const auto* elements = static_cast<const float*>(buffer.data);
    all.insert(all.end(), elements, elements + buffer.count);
  }
  return all;
}

std::vector<float> reference(int ranks, int step) {
  std::vector<float> all;
  for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient)
    for (std::size_t i = 0; i < kModel[gradient].elements; ++i) {
      float sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += value(rank, step, gradient, i);
      all.push_back(sum / static_cast<float>(ranks));
    }
  return all;
}

class Policies : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Policies, testing::ValuesIn(policy_names()), [](const auto& test) { return test.param; });

TEST_P(Policies, AverageOnEveryNumberOfRanksWithEqualBitsOnAll) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (const compress::Codec* codec : test::rounding_codecs()) {
      std::vector<std::vector<float>> last(static_cast<std::size_t>(ranks));
      on_groups(ranks, [&](Group& group) {
        Synchronizer synchronizer(
            group, kModel, {.policy = GetParam(), .fusion_bytes = 2000, .coding = {.codec = std::string(codec->name)}});
        for (int step = 0; step < kStepsToPlan + 3; ++step) {
          for (std::size_t gradient = kModel.size(); gradient-- > 0;)
            produce(synchronizer, group.rank(), step, gradient);
          synchronizer.wait();
          const std::vector<float> got = all_gradients(synchronizer), expected = reference(ranks, step);
          const float tolerance = codec->name == "none" ? 1e-6F : 0.02F;
          for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], expected[i], tolerance * expected[i]) << codec->name << ", step " << step;
        }
        EXPECT_GT(synchronizer.statistics().predicted_s, 0);
        EXPECT_FALSE(synchronizer.statistics().measuring);
        last[static_cast<std::size_t>(group.rank())] = all_gradients(synchronizer);
      });
      for (const std::vector<float>& rank : last) EXPECT_EQ(rank, last[0]);
    }
}

TEST_P(Policies, UpdateWeightsOnEveryRankAlike) {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const char* exchange : {"reduce_broadcast", "allreduce_broadcast"})
      on_groups(ranks, [&](Group& group) {
        Trained single(group, {.policy = "single", .exchange = exchange});
        Trained trained(group, {.policy = GetParam(), .fusion_bytes = 2000, .exchange = exchange});
        train(single, kStepsToPlan + 2, Order::serial);
        train(trained, kStepsToPlan + 2, Order::overlapped);
        const auto expected = single.replica.all(), got = trained.replica.all();
        for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient)
          for (std::size_t i = 0; i < got[gradient].size(); ++i)
            ASSERT_NEAR(got[gradient][i], expected[gradient][i], 1e-3 * std::abs(expected[gradient][i]) + 1e-3);
      });
}

TEST_P(Policies, HandOutBucketsInOrderUntilAllAreThere) {
  on_groups(3, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.policy = GetParam(), .fusion_bytes = 2000});
    for (int step = 0; step < kStepsToPlan + 2; ++step) {
      for (std::size_t gradient = kModel.size(); gradient-- > 0;) produce(synchronizer, group.rank(), step, gradient);
      std::size_t next = kModel.size();
      std::vector<BucketInfo> seen;
      while (const auto bucket = synchronizer.next_bucket()) {
        EXPECT_EQ(bucket->last + 1, next);
        next = bucket->first;
        const auto* elements = static_cast<const float*>(synchronizer.gradient(bucket->first).data);
        if (kModel[bucket->first].elements > 3) {
          EXPECT_NEAR(elements[3], 2 * value(0, step, bucket->first, 3), 1e-3);
        }
        seen.push_back(*bucket);
      }
      EXPECT_EQ(next, 0U);
      synchronizer.wait();
      EXPECT_EQ(synchronizer.buckets().size(), seen.size());
    }
  });
}

TEST_P(Policies, NameAGradientThatNeverBecomesReadyInsteadOfHanging) {
  auto groups = Group::threads(3);
  const auto failures = outcomes(3, [&](int rank) {
    Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], kModel, {.policy = GetParam()});
    for (std::size_t gradient = kModel.size(); gradient-- > 0;)
      if (rank != 1 || gradient != 2) synchronizer.ready(gradient);
    synchronizer.wait();
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const std::vector<std::string> words{"'fc1' never became ready on rank 1"};
    const Where where =
        rank == 1 ? expect_thrown<Misuse>(failures[rank], words) : expect_thrown<RemoteFailure>(failures[rank], words);
    EXPECT_EQ(where.tensor, "fc1");
  }
}

// Rank 0 could send everything at once. The slow rank decides what leaves first, and it leaves at once.
TEST(Online, TheSlowestRankDecidesWhatLeaves) {
  on_groups(3, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.policy = "online"});
    if (group.rank() != 1)
      for (std::size_t i = kModel.size(); i-- > 0;) synchronizer.ready(i);
    else
      synchronizer.ready(4);
    const BucketInfo first = synchronizer.wait(4);
    EXPECT_EQ(first.first, 4U);
    if (group.rank() == 1)
      for (std::size_t i = 4; i-- > 0;) synchronizer.ready(i);
    synchronizer.wait();
    EXPECT_GE(synchronizer.buckets().size(), 2U);
  });
}

TEST(Online, OfOneRankSendsWithoutAskingAnybody) {
  on_groups(1, [&](Group& group) {
    Synchronizer synchronizer(group, {{"w", 4}}, {.policy = "online"});
    static_cast<float*>(synchronizer.gradient(0).data)[3] = 5;
    synchronizer.ready(0);
    synchronizer.wait();
    EXPECT_EQ(static_cast<float*>(synchronizer.gradient(0).data)[3], 5);
  });
}

TEST(Policy, ThatWeighsTimesIsHarmlessWhereNothingIsExchanged) {
  on_groups(2, [&](Group& group) {
    for (const std::string& policy : policy_names()) {
      Synchronizer synchronizer(group, kModel, {.policy = policy, .exchange = "none"});
      for (int step = 0; step < kStepsToPlan + 2; ++step) {
        if (group.rank() == 1 && step > 0) break;  // alone means alone
        for (std::size_t i = kModel.size(); i-- > 0;) produce(synchronizer, group.rank(), step, i);
        synchronizer.wait();
        EXPECT_EQ(static_cast<const float*>(synchronizer.gradient(2).data)[1], value(group.rank(), step, 2, 1));
      }
    }
  });
}

TEST(Trace, ShowsPlannedExchangesBesideTheActualOnes) {
  on_groups(2, [&](Group& group) {
    Trace trace;
    Synchronizer synchronizer(group, kModel, {.policy = "mg_wfbp", .trace = &trace});
    for (int step = 0; step < kStepsToPlan + 1; ++step) {
      if (step == kStepsToPlan) trace.restart();
      for (std::size_t i = kModel.size(); i-- > 0;) produce(synchronizer, group.rank(), step, i);
      synchronizer.wait();
    }
    std::vector<std::string> planned, actual;
    for (const Span& span : trace.spans()) {
      if (span.track == "planned") planned.push_back(span.name);
      if (span.track == "exchange") actual.push_back(span.name);
    }
    EXPECT_EQ(planned, actual);
    EXPECT_FALSE(planned.empty());
  });
}

}  // namespace
}  // namespace syncopate
