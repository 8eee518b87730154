// Which samples a step takes, and which of them are whose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "syncopate/input.hpp"

namespace syncopate::input {
namespace {

using Samples = std::vector<std::uint32_t>;

/// The samples that all ranks take in one step, in rank order.
Samples taken(Order& order, const Progress& at, std::size_t batch, int ranks) {
  Samples all;
  std::size_t total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const SampleShare share = order.share(at, batch, rank, ranks);
    all.insert(all.end(), share.mine.begin(), share.mine.end());
    total = share.total;
  }
  EXPECT_EQ(all.size(), total);
  return all;
}

Samples epoch_of(Order& order, std::uint64_t epoch, std::size_t batch, int ranks) {
  Samples all;
  for (Progress at{.epoch = epoch}; at.epoch == epoch;) {
    const Samples step = taken(order, at, batch, ranks);
    all.insert(all.end(), step.begin(), step.end());
    advance(at, step.size(), order.samples());
  }
  return all;
}

TEST(Order, AnEpochTakesEachSampleOnceAndIsTheSameForEveryNumberOfRanksAndEveryBatch) {
  Order order(101, 7);
  const Samples alone = epoch_of(order, 3, 10, 1);
  Samples sorted = alone;
  std::ranges::sort(sorted);
  for (std::uint32_t i = 0; i < 101; ++i) EXPECT_EQ(sorted[i], i);
  EXPECT_EQ(epoch_of(order, 3, 10, 4), alone);
  EXPECT_EQ(epoch_of(order, 3, 3, 5), alone);
}

TEST(Order, EpochsAndSeedsDiffer) {
  Order order(1000, 7), other(1000, 8);
  EXPECT_NE(epoch_of(order, 0, 10, 1), epoch_of(order, 1, 10, 1));
  EXPECT_NE(epoch_of(order, 0, 10, 1), epoch_of(other, 0, 10, 1));
}

TEST(Order, FirstRanksTakeOneMoreWhereTheBatchDoesNotDivide) {
  Order order(100, 7);
  EXPECT_EQ(order.share({}, 10, 0, 4).mine.size(), 3u);
  EXPECT_EQ(order.share({}, 10, 3, 4).mine.size(), 2u);
  EXPECT_TRUE(order.share({.sample = 98}, 10, 3, 4).mine.empty());
}

// Chi-square over all places of all samples, and over all orders of three: six standard deviations above the mean.
TEST(Order, PlacesOfAllSamplesAreUniform) {
  constexpr std::size_t kSamples = 8, kEpochs = 8000;
  constexpr double kExpected = double{kEpochs} / kSamples, kFreedom = (kSamples - 1) * (kSamples - 1);
  std::vector<std::vector<int>> counts(kSamples, std::vector<int>(kSamples));
  Order order(kSamples, 1);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Samples samples = order.share({.epoch = epoch}, kSamples, 0, 1).mine;
    for (std::size_t place = 0; place < kSamples; ++place) ++counts[samples[place]][place];
  }
  double chi = 0;
  for (const auto& places : counts)
    for (const int count : places) chi += (count - kExpected) * (count - kExpected) / kExpected;
  EXPECT_LT(chi, kFreedom + 6 * std::sqrt(2 * kFreedom));
  EXPECT_GT(chi, kFreedom - 6 * std::sqrt(2 * kFreedom)) << "places are more even than chance makes them";
}

TEST(Order, AllOrdersOfAFewSamplesAreEquallyFrequent) {
  constexpr std::uint64_t kEpochs = 24'000;
  std::map<Samples, int> counts;
  Order order(4, 2);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) ++counts[order.share({.epoch = epoch}, 4, 0, 1).mine];
  ASSERT_EQ(counts.size(), 24U);
  double chi = 0;
  for (const auto& [samples, count] : counts) chi += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_LT(chi, 23 + 6 * std::sqrt(2 * 23.0));
}

}  // namespace
}  // namespace syncopate::input
