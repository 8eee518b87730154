// Rows on servers that die and over streams that break, in virtual time: every update is applied exactly once.
#include <gtest/gtest.h>

#include "sanitized.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::virtual_server {
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
  std::uint64_t kills = 0, breaks = 0;
  for (std::uint64_t seed = 0; seed < kRowHistories; ++seed) {
    JobOptions options = pushing_rows(seed);
    options.break_every_s = 0.05;
    options.kill_every_s = 0.1;
    Job job(options);
    expect_laws(job, seed);
    kills += job.kills;
    breaks += job.breaks;
  }
  EXPECT_GT(kills, kRowHistories);
  EXPECT_GT(breaks, kRowHistories);
}

TEST(RowHistories, ApplyEveryUpdateOnceWithoutReplicasAndWithADeadWorker) {
  for (std::uint64_t seed = 0; seed < kRowHistories; ++seed) {
    JobOptions options = pushing_rows(seed);
    options.break_every_s = 0.05;
    if (seed % 4 < 2) options.dies_s = {0, 0.3, 0};
    Job job(options);
    expect_laws(job, seed);
  }
}

TEST(RowHistories, ImagesHaveThePushesOfTheirStepsThoughStreamsBreakAndAWorkerDies) {
  std::uint64_t images = 0, exact = 0;
  for (std::uint64_t seed = 0; seed < kRowHistories; ++seed) {
    JobOptions options = pushing_rows(seed);
    options.image_every = 1 + static_cast<Clock>(seed % 4);
    options.break_every_s = 0.05;
    if (seed % 5 == 4) options.dies_s = {0, 0.3, 0};
    Job job(options);
    expect_laws(job, seed);
    images += job.images;
    exact += job.rules.in_lockstep() && !job.may_give_up ? job.images : 0;
  }
  EXPECT_GT(images, 20 * kRowHistories);
  EXPECT_GT(exact, 5 * kRowHistories);
}

}  // namespace
}  // namespace syncopate::virtual_server
