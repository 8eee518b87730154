// Rows on servers that die and over streams that break, in virtual time: every update is applied exactly once.
#include <gtest/gtest.h>

#include "random/draw.hpp"
#include "sanitized.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::server {
namespace {

constexpr std::uint64_t kRowHistories = test::kSanitized ? 8 : 40;

/// Three workers and two or three servers with two tables of rows; without weights if `seed` is odd.
JobOptions pushing_rows(std::uint64_t seed) {
  const std::vector<std::pair<std::string, double>> plain{{"weight_decay", 0}};
  JobOptions options{
      .setup = {.workers = 3,
                .servers = 2 + seed % 2,
                .consistency = seed % 3 == 0 ? "bsp" : "tap",
                .optimizer = "sgd",
                .hyperparameters = plain,
                .rows = {{.name = "users", .width = 3, .scale = 0}, {.name = "items", .width = 1, .scale = 0}}},
      .steps = 25,
      .seed = seed};
  if (seed % 2 == 0) options.setup.tables = {{"weights", 40}};
  return options;
}

void expect_laws(Job& job, std::uint64_t seed) {
  job.run();
  if (job.broken.empty()) job.check_end();
  EXPECT_EQ(job.broken, std::vector<std::string>{}) << "seed " << seed;
}

TEST(RowHistories, ApplyEveryUpdateOnceThoughStreamsBreakAndServersDie) {
  const std::vector<std::uint64_t> seeds = test::seeds(kRowHistories);
  std::uint64_t kills = 0, breaks = 0;
  for (const std::uint64_t seed : seeds) {
    JobOptions options = pushing_rows(seed);
    options.break_every_s = 0.05;
    options.kill_every_s = 0.1;
    Job job(options);
    expect_laws(job, seed);
    kills += job.kills;
    breaks += job.breaks;
  }
  EXPECT_TRUE(seeds.size() == 1 || kills > seeds.size()) << kills;
  EXPECT_TRUE(seeds.size() == 1 || breaks > seeds.size()) << breaks;
}

TEST(RowHistories, ApplyEveryUpdateOnceWithoutReplicasAndWithADeadWorker) {
  for (const std::uint64_t seed : test::seeds(kRowHistories)) {
    JobOptions options = pushing_rows(seed);
    options.break_every_s = 0.05;
    if (seed % 4 < 2) options.accidents[1] = {.at_s = 0.3};
    Job job(options);
    expect_laws(job, seed);
  }
}

TEST(RowHistories, ImagesHaveThePushesOfTheirStepsThoughStreamsBreakAndAWorkerDies) {
  const std::vector<std::uint64_t> seeds = test::seeds(kRowHistories);
  std::uint64_t images = 0, exact = 0;
  for (const std::uint64_t seed : seeds) {
    JobOptions options = pushing_rows(seed);
    options.image_every = 1 + static_cast<Clock>(seed % 4);
    options.break_every_s = 0.05;
    if (seed % 5 == 4) options.accidents[1] = {.at_s = 0.3};
    Job job(options);
    expect_laws(job, seed);
    images += job.images;
    exact += job.rules.in_lockstep() && !job.may_give_up ? job.images : 0;
  }
  EXPECT_TRUE(seeds.size() == 1 || images > 20 * seeds.size()) << images;
  EXPECT_TRUE(seeds.size() == 1 || exact > 5 * seeds.size()) << exact;
}

constexpr std::uint64_t kAccidents = kRowHistories / 2;

/// A job in lockstep whose servers take images, and give up a worker that is silent for 1.5 s.
JobOptions with_images(std::uint64_t seed) {
  JobOptions options = pushing_rows(seed);
  options.setup.consistency = "bsp";
  options.steps = 80;
  options.image_every = 1 + static_cast<Clock>(seed / 2 % 5);
  options.break_every_s = seed % 3 == 0 ? 0.2 : 0;
  return options;
}

TEST(RowHistories, ImagesHaveExactlyThePushesOfTheirStepsThoughAWorkerIsGivenUpAndReturns) {
  const std::vector<std::uint64_t> seeds = test::seeds(kAccidents);
  std::uint64_t images = 0;
  for (const std::uint64_t seed : seeds) {
    JobOptions options = with_images(seed);
    options.accidents[2] = {.at_s = 0.3, .for_s = 1.6 + 0.04 * static_cast<double>(seed % 50)};
    Job job(options);
    expect_laws(job, seed);
    images += job.images;
  }
  EXPECT_TRUE(seeds.size() == 1 || images > 20 * seeds.size()) << images;
}

TEST(RowHistories, ImagesHaveExactlyThePushesOfTheirStepsThoughAProcessTakesAWorkersPlace) {
  for (const std::uint64_t seed : test::seeds(kAccidents)) {
    JobOptions options = with_images(seed);
    options.accidents[2] = {.at_s = 0.3, .replaced_s = 0.05 + 0.1 * static_cast<double>(seed % 30)};
    Job job(options);
    expect_laws(job, seed);
  }
}

/// All workers visit the rows every few steps. No visit of a worker that was given up, or of the process in its place,
/// is taken for another one: a worker would wait for a visit that never comes.
TEST(RowHistories, VisitsEndThoughAWorkerIsGivenUpAndReturnsOrIsReplaced) {
  for (const std::uint64_t seed : test::seeds(2 * kAccidents)) {
    JobOptions options = pushing_rows(seed);
    if (!options.setup.tables.empty()) options.setup.consistency = "bsp";
    options.steps = 80;
    options.visit_every = 1 + static_cast<Clock>(seed / 2 % 3);
    options.break_every_s = seed % 3 == 0 ? 0.2 : 0;
    options.kill_every_s = seed % 4 == 0 ? 0.3 : 0;
    const double draw = 0.04 * static_cast<double>(seed % 50);
    options.accidents[2] = seed % 5 == 4 ? Accident{.at_s = 0.3 + draw / 20, .replaced_s = 0.05 + draw}
                                         : Accident{.at_s = 0.3 + draw / 20, .for_s = 1.1 + draw};
    Job job(options);
    expect_laws(job, seed);
  }
}

TEST(RowHistories, AProcessThatWasReplacedIsNeverAWorkerAgain) {
  for (const std::uint64_t seed : test::seeds(kAccidents)) {
    JobOptions options = pushing_rows(seed);
    if (!options.setup.tables.empty()) options.setup.consistency = "bsp";
    options.steps = 80;
    options.break_every_s = 0.2;
    options.kill_every_s = seed % 4 == 0 ? 0.3 : 0;
    options.accidents[1] = {.at_s = 0.2, .for_s = 0.6 + 0.04 * static_cast<double>(seed % 50), .replaced_s = 0.55};
    Job job(options);
    expect_laws(job, seed);
  }
}

}  // namespace
}  // namespace syncopate::server
