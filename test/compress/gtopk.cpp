// Global top-k: averages and residuals, bit for bit, against a tree of exhaustive merges.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.hpp"
#include "compress/coders.hpp"
#include "compress/distributions.hpp"
#include "compress/sparse/merging.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using Sparse = std::map<std::uint32_t, float>;
using Values = std::vector<float>;

/// The k elements of the greatest magnitude; ties go to the lower index. The others go to `rest`.
Sparse largest(const Sparse& all, std::size_t k, Sparse& rest) {
  std::vector<std::pair<std::uint32_t, float>> order(all.begin(), all.end());
  std::ranges::stable_sort(order,
                           [](const auto& a, const auto& b) { return std::fabs(a.second) > std::fabs(b.second); });
  k = std::min(k, order.size());
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(k);
  rest = Sparse(end, order.end());
  return {order.begin(), end};
}

/// `ranks`: every rank's elements v, which are replaced by its residuals. Returns the sum at the end of the tree.
Sparse merged(std::vector<Values>& ranks, std::size_t k) {
  std::vector<Sparse> have;
  for (Values& v : ranks) {
    Sparse all, rest;
    for (std::uint32_t i = 0; i < v.size(); ++i)
      if (v[i] != 0) all[i] = v[i];
    have.push_back(largest(all, k, rest));
    for (const auto& [i, value] : have.back()) v[i] -= value;
  }
  for (std::size_t bit = 1; bit < ranks.size(); bit *= 2)
    for (std::size_t rank = 0; rank + bit < ranks.size(); rank += 2 * bit) {
      for (const auto& [i, value] : have[rank + bit]) {
        const auto [place, is_first] = have[rank].try_emplace(i, value);
        if (!is_first) place->second = place->second + value;
      }
      Sparse dropped;
      have[rank] = largest(have[rank], k, dropped);
      for (const auto& [i, value] : dropped) ranks[rank][i] += value;
    }
  return have[0];
}

class MergesOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MergesOf, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16));

TEST_P(MergesOf, BringTheLargestSumsAndKeepTheRestBitForBit) {
  constexpr std::size_t kElements = 700, kSelected = 35;
  for (const char* distribution : {"normal", "heavy_tail", "all_equal", "few_not_zero", "denormal"}) {
    const auto ranks = static_cast<std::size_t>(GetParam());
    Coders coders(test::with_residual("gtopk:0.05"), {{kElements}}, GetParam());
    std::vector<Values> residuals(ranks, Values(kElements));
    for (std::uint64_t step = 0; step < 5; ++step) {
      coders.fill([&](std::size_t rank, std::size_t, std::size_t i) {
        const float value = test::kDistributions.at(distribution)(base::CounterRandom{step, rank}, i);
        residuals[rank][i] = value + residuals[rank][i];
        return value;
      });
      const Sparse sum = merged(residuals, kSelected);
      coders.step();
      for (std::size_t rank = 0; rank < ranks; ++rank)
        for (std::uint32_t i = 0; i < kElements; ++i) {
          const auto found = sum.find(i);
          const float average = found == sum.end() ? 0 : found->second / static_cast<float>(ranks);
          ASSERT_EQ(coders.at(rank).values[i], average) << distribution << ", step " << step << ", element " << i;
          ASSERT_EQ(coders.residual(rank, 0, i), residuals[rank][i])
              << distribution << ", step " << step << ", rank " << rank << ", element " << i;
        }
    }
  }
}

// Without feedback no rank keeps anything, and what a merge drops is lost.
TEST(Merges, RefuseAByteThatFollowsAPacketsLastTensor) {
  for (const std::size_t bytes : {0, 1}) {
    Coders coders(settings_of("gtopk:0.1"), {{20}}, 2);
    coders.fill([](auto, auto, std::size_t i) { return static_cast<float>(i); });
    coders.damage = [bytes](std::size_t rank, auto& payload) {
      payload.resize(payload.size() + (rank == 1 ? bytes : 0));
    };
    if (bytes == 0) coders.step();
    if (bytes == 1) EXPECT_THROW(coders.step(), Corrupt);
  }
}

TEST(Merges, KeepNothingWithoutFeedback) {
  Coders coders(settings_of("gtopk:0.1"), {{20}}, 2);
  coders.fill(
      [](std::size_t rank, std::size_t, std::size_t i) { return i < 4 ? static_cast<float>(rank * 4 + i) : 0; });
  coders.step();
  // (0, 0, 2, 3) and (0, 0, 6, 7): both select elements 2 and 3.
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(coders.at(0).values[i], i < 2 ? 0.0F : static_cast<float>(i + 2)) << i;
  EXPECT_TRUE(coders.at(0).kept.empty());
}

// Momentum correction: a value that a merge drops is added to the residual; the sender has already masked its velocity.
TEST(Merges, ReturnValuesUnderMomentumCorrection) {
  Settings settings = settings_of("gtopk:0.5");
  settings.feedback = {.kind = Feedback::Kind::momentum, .momentum = 0.5F};
  Coders coders(settings, {{2}}, 2);
  coders.fill(
      [](std::size_t rank, std::size_t, std::size_t i) { return rank == i ? 3.0F + static_cast<float>(i) : 1; });
  coders.step();  // rank 0 selects element 0 (3), rank 1 element 1 (4): the merge keeps element 1
  EXPECT_EQ(coders.at(0).values, (Values{0, 2}));
  EXPECT_EQ(test::floats_of(coders.at(0).kept), (Values{3, 1, 0, 1})) << "r' and u' of rank 0";
  EXPECT_EQ(test::floats_of(coders.at(1).kept), (Values{1, 0, 1, 0})) << "r' and u' of rank 1";
}

}  // namespace
}  // namespace syncopate::compress
