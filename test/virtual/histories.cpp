// Histories: production protocols under seeded faults keep their laws, and equal seeds give equal histories.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "random/draw.hpp"
#include "sanitized.hpp"
#include "virtual/history.hpp"

namespace syncopate::virtual_world {
namespace {

constexpr std::uint64_t histories(std::uint64_t count) { return test::kSanitized ? count / 4 : count; }

void expect_laws(const History& history, std::string_view test = "KeepTheLaws") {
  for (const std::string& law : history.broken) ADD_FAILURE() << law;
  if (!history.broken.empty())
    ADD_FAILURE() << "seed " << history.seed << ": " << history.scenario
                  << "\nagain, with every event: SYNCOPATE_SEED=" << history.seed
                  << " SYNCOPATE_COUNT=1 SYNCOPATE_TRACE=1 test_virtual --gtest_filter=Histories." << test;
}

TEST(Histories, KeepTheLaws) {
  const bool prints = std::getenv("SYNCOPATE_TRACE") != nullptr;
  for (const std::uint64_t seed : test::seeds(histories(100))) expect_laws(history_of(seed, prints));
}

/// Each seed finds a defect that other seeds rarely find: planted (check/mutants/transport) or fixed
/// (docs/virtual_time.md).
TEST(Histories, ThatHaveFoundDefectsKeepTheLaws) {
  for (const std::uint64_t seed :
       {1, 2, 5, 6, 8, 12, 23, 39, 41, 47, 124, 148, 182, 196, 308, 344, 507, 724, 919, 951, 965, 1291, 2341, 3070,
        4537, 9330,
        // A stopped rank finds the time for joining over when it goes on.
        1001420, 1053372, 1091890,
        // A rank that leaves is cut off while another one is still connecting to it.
        1018440,
        // The rank that watches a stopped one leaves.
        1036421, 1056773, 2003991, 2004640,
        // A rank that fails is gone before a slow neighbour has taken the reason.
        2028301,
        // A connection of a rank that leaves breaks: one side of the tree waits for the other.
        3053545})
    expect_laws(history_of(seed));
}

TEST(Histories, OfTheSameSeedAreTheSame) {
  for (std::uint64_t seed = 1; seed <= histories(20); ++seed) {
    const History once = history_of(seed), again = history_of(seed);
    EXPECT_EQ(once.digest, again.digest) << "seed " << seed;
    EXPECT_EQ(once.events, again.events) << "seed " << seed;
    EXPECT_NE(once.digest, history_of(seed + 1000).digest);
  }
}

/// A rank that lost a link because its neighbour failed must wait for the cause: here it arrives up to a second later.
TEST(Histories, OfDistantRanksNameTheStoppedRank) {
  for (const std::uint64_t seed : test::seeds(histories(20)))
    expect_laws(distant_history(seed, std::getenv("SYNCOPATE_TRACE") != nullptr), "OfDistantRanksNameTheStoppedRank");
}

TEST(Histories, OfManyCollectivesEndInOrder) {
  const History history = calm_history(1, 8, 100);
  EXPECT_TRUE(history.broken.empty()) << history.broken.front();
}

}  // namespace
}  // namespace syncopate::virtual_world
