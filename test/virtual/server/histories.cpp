// ServerHistories: parameter servers and workers under seeded faults keep their laws; equal seeds give equal histories.
#include <gtest/gtest.h>

#include <cstdlib>

#include "random/draw.hpp"
#include "sanitized.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::server {
namespace {

TEST(ServerHistories, KeepTheLaws) {
  const bool prints = std::getenv("SYNCOPATE_TRACE") != nullptr;
  for (const std::uint64_t seed : test::seeds(test::kSanitized ? 60 : 300)) {
    const ServerHistory history = server_history_of(seed, prints);
    for (const std::string& law : history.broken) ADD_FAILURE() << law;
    if (!history.broken.empty())
      ADD_FAILURE() << "\nseed " << seed << ": " << history.scenario
                    << "\nagain, with every event: SYNCOPATE_SEED=" << seed
                    << " SYNCOPATE_COUNT=1 SYNCOPATE_TRACE=1 test_virtual --gtest_filter=ServerHistories.KeepTheLaws";
  }
}

TEST(ServerHistories, OfTheSameSeedAreTheSame) {
  for (std::uint64_t seed = 1; seed <= (test::kSanitized ? 4 : 20); ++seed) {
    const std::uint64_t digest = server_history_of(seed).digest;
    EXPECT_EQ(digest, server_history_of(seed).digest) << "seed " << seed;
    EXPECT_NE(digest, server_history_of(seed + 1000).digest) << "seed " << seed;
  }
}

}  // namespace
}  // namespace syncopate::server
