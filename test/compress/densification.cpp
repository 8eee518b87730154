// Densification: without a shared mask, sums of sparse vectors become denser with every rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "compress/sparse/merging.hpp"

namespace syncopate::compress::sparse {
namespace {

constexpr std::size_t kElements = 400'000;
constexpr int kRanks = 96;

double law(double density, int ranks) { return 1 - std::pow(1 - density, ranks); }

/// A rank's selection: each element with probability `density`; the values are 1.
Arrival drawn(double density, std::uint64_t rank) {
  Arrival arrival;
  const base::CounterRandom random{rank, 17};
  for (std::uint32_t i = 0; i < kElements; ++i)
    if (random.uniform(i) < density) {
      arrival.indices.push_back(i);
      arrival.values.push_back(1);
    }
  return arrival;
}

Arrival arrival_of(const Selection& selection) {
  return {{selection.indices().begin(), selection.indices().end()},
          {selection.values().begin(), selection.values().end()}};
}

// docs/compression.md has the numbers that this test writes with `--gtest_output=json`.
TEST(Densification, FollowsItsLawWithIndependentSelectionsAndStopsWhereSumsAreCut) {
  for (const double density : {0.001, 0.01}) {
    const auto most = static_cast<std::size_t>(density * kElements);
    Arrival sum = drawn(density, 0), cut = sum;
    Selection room;
    for (int ranks = 2; ranks <= kRanks; ++ranks) {
      const Arrival own = drawn(density, static_cast<std::uint64_t>(ranks));
      add_selections(sum, own, room);
      sum = arrival_of(room);
      add_selections(cut, own, room);
      static_cast<void>(room.keep_largest(most));
      cut = arrival_of(room);
      ASSERT_LE(cut.indices.size(), most) << "merged and cut, as gTop-k does";
      const double expected = law(density, ranks), measured = static_cast<double>(sum.indices.size()) / kElements;
      const double deviation = std::sqrt(expected * (1 - expected) / kElements);
      ASSERT_NEAR(measured, expected, 5 * deviation) << density << ", " << ranks << " ranks";
      if (ranks == 2 || ranks == 8 || ranks == 32 || ranks == kRanks)
        RecordProperty(fmt::format("density_{}_ranks_{}", density, ranks),
                       fmt::format("{:.4f}, law {:.4f}", measured, expected));
    }
  }
  EXPECT_NEAR(law(0.01, kRanks), 0.62, 0.005);
  EXPECT_NEAR(law(0.001, kRanks), 0.092, 0.0005);
}

}  // namespace
}  // namespace syncopate::compress::sparse
