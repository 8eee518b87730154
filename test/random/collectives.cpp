// Random programs of collectives, messages and splits: every result is what all ranks' inputs make it.
#include <gtest/gtest.h>

#include "random/job.hpp"
#include "sanitized.hpp"

namespace syncopate {
namespace {

constexpr std::size_t kPrograms = test::kSanitized ? 40 : 1000;
constexpr int kSteps = test::kSanitized ? 12 : 25;

void run_program(std::uint64_t seed) {
  test::Draw draw(seed);
  const test::Job job = draw_job(draw);
  const std::size_t most = test::kSanitized ? 3000 : draw.pick(std::array{300, 5000, 60'000});
  const test::Script script{seed, kSteps, {job.ranks, job.hosts(), most, true}};
  run(job, [&](Group& group, const test::Ledger& ledger) { perform(group, script, ledger); });
}

TEST(RandomProgram, OfCollectivesAndMessagesEndsWithTheRightValuesOnEveryRank) {
  for (const std::uint64_t seed : test::seeds(kPrograms))
    ASSERT_NO_THROW(run_program(seed)) << test::replay("test_random", "RandomProgram.OfColl*", seed);
}

}  // namespace
}  // namespace syncopate
