// Bisection selects as the corrected Algorithm 1 of CommLib, and returns the correct number of reads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "compress/distributions.hpp"
#include "compress/sparse/selection.hpp"
#include "kernel/select.hpp"

namespace syncopate::compress::sparse {
namespace {

using test::kDistributions;

std::vector<float> drawn(const std::string& distribution, std::size_t count) {
  const base::CounterRandom random{1, count};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = kDistributions.at(distribution)(random, i);
  return values;
}

struct Selected {
  std::vector<std::uint32_t> indices;
  std::size_t reads = 0;
};

Selected select(std::vector<float> values, std::size_t k, std::uint64_t seed = 9) {
  Selection into;
  const Compensated tensor({.values = Buffer(std::span(values)), .rows = values.size()}, {});
  Selected selected;
  selected.reads = select_by_bisection(tensor, k, base::CounterRandom{seed}, into);
  selected.indices.assign(into.indices().begin(), into.indices().end());
  return selected;
}

/// Values that are not finite reach every threshold.
float absolute(float x) { return std::isfinite(x) ? std::fabs(x) : std::numeric_limits<float>::infinity(); }

/// The two thresholds of Algorithm 1, line by line, corrected.
struct Thresholds {
  double t1 = std::numeric_limits<double>::infinity(), t2 = 0;
  std::size_t k1 = 0, trials = 0;
};

Thresholds thresholds_by_the_paper(const std::vector<float>& x, std::size_t k, float u) {
  Thresholds found;
  std::size_t k2 = x.size();
  double l = 0, r = 1;
  for (; found.trials < 30 && found.k1 != k; ++found.trials) {
    const double ratio = l + (r - l) / 2;
    const double threshold = static_cast<float>(ratio * u);
    const auto c = static_cast<std::size_t>(
        std::ranges::count_if(x, [&](float value) { return value != 0 && absolute(value) >= threshold; }));
    (c <= k ? r : l) = ratio;
    if (c <= k && c > found.k1) found.k1 = c, found.t1 = threshold;
    if (c > k && c < k2) k2 = c, found.t2 = threshold;
  }
  return found;
}

/// `random(limit)` draws a number below `limit`.
template <class Random>
Selected by_the_paper(const std::vector<float>& x, std::size_t k, Random random) {
  float u = 0;
  for (const float value : x) u = std::max(u, std::min(absolute(value), std::numeric_limits<float>::max()));
  if (k == 0 || u == 0) return {{}, 1};
  const Thresholds found = k < x.size() ? thresholds_by_the_paper(x, k, u) : Thresholds{};
  Selected selected{{}, 1 + found.trials + 1};
  std::vector<std::uint32_t> between;
  for (std::uint32_t i = 0; i < x.size(); ++i) {
    const bool is_above = found.k1 > 0 && absolute(x[i]) >= found.t1;
    if (x[i] != 0 && absolute(x[i]) >= found.t2) (is_above ? selected.indices : between).push_back(i);
  }
  const std::size_t missing = std::min(k - selected.indices.size(), between.size());
  const std::size_t begin = random(between.size() - missing + 1);
  for (std::size_t i = begin; i < begin + missing; ++i) selected.indices.push_back(between[i]);
  std::ranges::sort(selected.indices);
  return selected;
}

class Bisection : public testing::TestWithParam<std::string> {};

TEST_P(Bisection, SelectsAndReadsAsTheCorrectedAlgorithmDoes) {
  for (const std::size_t count : {0, 1, 2, 64, 4097, 30000}) {
    const std::vector<float> values = drawn(GetParam(), count);
    for (const std::size_t k :
         {std::size_t{0}, std::size_t{1}, count / 100, count / 3, count - count / 10, count, count + 9}) {
      const base::CounterRandom random{9};
      const Selected expected = by_the_paper(
          values, k, [&](std::size_t limit) { return random.below(static_cast<std::uint32_t>(limit), 0); });
      const Selected selected = select(values, k);
      ASSERT_EQ(selected.indices, expected.indices) << count << " elements, k = " << k;
      ASSERT_EQ(selected.reads, expected.reads) << count << " elements, k = " << k;
      ASSERT_LE(selected.indices.size(), k);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Bisection,
                         testing::Values("normal", "heavy_tail", "all_equal", "all_zero", "few_not_zero", "ascending",
                                         "denormal", "one_block_is_large", "nan_and_infinity"),
                         [](const auto& of) { return of.param; });

// 13 to 17 trials suffice for gradients of training; the printed algorithm always takes 30.
TEST(Bisection, StopsWhenExactlyKReachTheThreshold) {
  const Selected selected = select(drawn("normal", 200000), 2000);
  EXPECT_GE(selected.reads, 2U + 10U);
  EXPECT_LE(selected.reads, 2U + 20U);
  EXPECT_EQ(select(drawn("all_equal", 1000), 10).reads, 2U + 30U) << "no threshold lets exactly 10 through";
}

// The printed algorithm starts at the mean; then the second half of the selection would be drawn from all elements.
TEST(Bisection, FindsThresholdsBelowTheMeanMagnitude) {
  const std::vector<float> values = drawn("normal", 50000);
  const std::size_t k = 40000;
  std::vector<float> sorted = values;
  std::ranges::sort(sorted, std::greater<>(), [](float x) { return std::fabs(x); });
  for (const std::uint32_t i : select(values, k).indices) ASSERT_GE(std::fabs(values[i]), std::fabs(sorted[k + 5]));
}

TEST(Bisection, DrawsNeighboursFromAnyPlaceAndTheSameOnesFromTheSameNumbers) {
  const std::vector<float> equal = drawn("all_equal", 12);
  std::set<std::uint32_t> begins;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto indices = select(equal, 4, seed).indices;
    ASSERT_EQ(indices.size(), 4U);
    for (std::size_t i = 1; i < 4; ++i) ASSERT_EQ(indices[i], indices[i - 1] + 1);
    begins.insert(indices[0]);
    ASSERT_EQ(indices, select(equal, 4, seed).indices);
  }
  EXPECT_EQ(begins.size(), 9U) << "0 to 8";
}

}  // namespace
}  // namespace syncopate::compress::sparse
