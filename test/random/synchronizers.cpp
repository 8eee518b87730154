// Random synchronizers: whatever is drawn of models, settings and orders, every gradient becomes its average.
#include <gtest/gtest.h>

#include "random/job.hpp"
#include "random/training.hpp"
#include "sanitized.hpp"

namespace syncopate {
namespace {

constexpr std::size_t kTrainings = test::kSanitized ? 40 : 800;

void run_training(std::uint64_t seed) {
  test::Draw draw(seed);
  const test::Job job = draw_job(draw);
  const test::Training training = draw_training(draw, job.ranks);
  run(job, [&](Group& group, const test::Ledger& ledger) { train(group, training, ledger); });
}

TEST(RandomSynchronizer, AveragesEveryGradientOnEveryRank) {
  for (const std::uint64_t seed : test::seeds(kTrainings))
    ASSERT_NO_THROW(run_training(seed)) << test::replay("test_random", "RandomSynchronizer.Averages*", seed);
}

}  // namespace
}  // namespace syncopate
