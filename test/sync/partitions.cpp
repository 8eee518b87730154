// Partitions: options that differ leave rank 0's on all ranks, and ranks that cut otherwise all the same get Mismatch.
#include <gtest/gtest.h>

#include <algorithm>

#include "compress/codec.hpp"
#include "ranks.hpp"
#include "schedule/policy.hpp"
#include "sync/bench.hpp"
#include "sync/flow.hpp"
#include "sync/replica.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace test;
using schedule::Partition;

constexpr int kRanks = 3;

/// One step as the communication thread runs it, under a partition without agreement.
void run_step(Group& group, const std::vector<Gradient>& model, const Partition& partition,
              SynchronizerOptions options) {
  const sync::Exchange& exchange = sync::exchange_named(options.exchange);
  std::vector<float> weights(10000);
  if (exchange.updater() != Updater::caller) {
    std::size_t offset = 0;
    for (const Gradient& gradient : model) {
      options.weights.emplace_back(weights.data() + offset, gradient.elements, DType::f32);
      offset += gradient.elements;
    }
    options.update = [](std::size_t, std::size_t) {};
  }
  sync::Flow flow(group, model, options, sync::codec_settings(options, model), sync::GradientMemory::arena);
  flow.updater.agree_on_neighbours();
  sync::Buckets buckets(flow.inputs, flow.updater);
  for (const schedule::Bucket& bucket : partition) sync::run_bucket(buckets.of(bucket), flow.context);
  if (!flow.updater.ends_in_weights()) return;
  flow.updater.combined();
  for (std::size_t i = partition.size(); i-- > 0;) sync::deliver(buckets.of(partition[i]), flow.context);
}

/// Every rank fails with Mismatch and a text with all of `words`.
void expect_mismatch_everywhere(const std::vector<std::exception_ptr>& failures,
                                const std::vector<std::string>& words) {
  for (const std::exception_ptr& failure : failures) test::expect_thrown<Mismatch>(failure, words);
}

/// Rank `odd` has a partition of its own, the others have `usual`.
struct Disagreement {
  int odd = 0;
  Partition usual, other;
  std::vector<std::string> words;
};

void expect_mismatch(const std::vector<Gradient>& model, const Disagreement& case_,
                     const SynchronizerOptions& options) {
  const auto body = [&](Group& group) {
    run_step(group, model, group.rank() == case_.odd ? case_.other : case_.usual, options);
  };
  auto groups = Group::threads(kRanks);
  expect_mismatch_everywhere(outcomes(kRanks, [&](int rank) { body(*groups[static_cast<std::size_t>(rank)]); }),
                             case_.words);
  for (const char* transport : {"tcp", "shm"})
    expect_mismatch_everywhere(outcomes_over(transport, kRanks, body), case_.words);
}

const Partition kByGradient{{4, 4}, {3, 3}, {2, 2}, {1, 1}, {0, 0}};

TEST(Partitions, CutDifferentlyAreAMismatchOnEveryRankByEveryExchangeAndCodec) {
  for (const sync::Exchange* exchange : sync::exchanges())
    for (const compress::Codec* codec : test::rounding_codecs()) {
      if (exchange->name == "none" || !exchange->serves.includes(codec->combines)) continue;
      SCOPED_TRACE(std::string(exchange->name) + " " + std::string(codec->name));
      expect_mismatch(kModel, {.odd = 2, .usual = kByGradient, .other = {{0, 4}}, .words = {"fc2"}},
                      {.coding = {.codec = std::string(codec->name)}, .exchange = std::string(exchange->name)});
    }
}

TEST(Partitions, ThatDifferOnRankZeroAreAMismatchOnEveryRank) {
  expect_mismatch(kModel, {.odd = 0, .usual = kByGradient, .other = {{3, 4}, {0, 2}}, .words = {"fc2", "fc1.bias"}},
                  {});
}

TEST(Partitions, ThatDifferLateInTheStepAreAMismatchThere) {
  expect_mismatch(kModel, {.odd = 1, .usual = kByGradient, .other = {{4, 4}, {3, 3}, {2, 2}, {0, 1}}, .words = {"bn1"}},
                  {});
}

// These have equal sizes and different names.
TEST(Partitions, OfEqualSizesInAnotherOrderAreAMismatch) {
  const std::vector<Gradient> even{{"a", 500}, {"b", 500}, {"c", 500}};
  expect_mismatch(even, {.odd = 2, .usual = {{2, 2}, {1, 1}, {0, 0}}, .other = {{1, 1}, {2, 2}, {0, 0}}, .words = {}},
                  {});
}

TEST(Partitions, FromOptionsThatDifferAreRankZerosOnAllRanks) {
  on_groups(kRanks, [](Group& group) {
    const std::size_t fusion_bytes[] = {1200, 40000, 4};
    const auto mine = fusion_bytes[static_cast<std::size_t>(group.rank())];
    Synchronizer synchronizer(group, kModel, {.policy = "fusion", .fusion_bytes = mine});
    for (int step = 0; step < 2; ++step) {
      for (std::size_t gradient = kModel.size(); gradient-- > 0;) {
        auto* elements = static_cast<float*>(synchronizer.gradient(gradient).data);
        std::fill_n(elements, kModel[gradient].elements, static_cast<float>(group.rank() + step));
        synchronizer.ready(gradient);
      }
      synchronizer.wait();
      const std::vector<BucketInfo> buckets = synchronizer.buckets();
      ASSERT_EQ(buckets.size(), 4U);  // 129 + 1; 5000; 7; 300 elements: as rank 0's 1200 bytes decide
      EXPECT_EQ(buckets[0].first, 3U);
      for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient)
        EXPECT_EQ(static_cast<float*>(synchronizer.gradient(gradient).data)[0], static_cast<float>(1 + step));
    }
  });
}

}  // namespace
}  // namespace syncopate
