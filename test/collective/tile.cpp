// Tiles: a plan cut into tiles is still a correct plan, in the order that keeps ranks busy.
#include <gtest/gtest.h>

#include "collective/plan/program.hpp"
#include "collective/select/select.hpp"

namespace syncopate::collective {
namespace {

std::vector<Plan> tiled_plans(const char* name, int ranks, std::uint32_t tiles) {
  std::vector<Plan> plans = plan_collective({.collective = Collective::allreduce, .algorithm = name, .ranks = ranks});
  for (Plan& plan : plans) plan = plan::tiled(plan, tiles);
  return plans;
}

TEST(Tile, EveryTiledPlanIsProved) {
  int proved = 0;
  for (const Algorithm* algorithm : algorithms())
    for (const int ranks : {2, 3, 4, 5, 8, 13, 16})
      for (const std::uint32_t tiles : {1U, 2U, 3U, 7U}) {
        const plan::Shape shape{.size = static_cast<std::uint32_t>(ranks)};
        if (algorithm->tiles == nullptr || !algorithm->tiles(shape)) continue;
        ++proved;
        EXPECT_EQ(verify_plans(tiled_plans(algorithm->name.data(), ranks, tiles), Collective::allreduce, 0), "")
            << algorithm->name << ' ' << ranks << " ranks, " << tiles;
      }
  EXPECT_EQ(proved, (7 + 7 + 4) * 4) << "ring, pairwise_exchange, and halving_doubling on powers of two";
}

TEST(Tile, OneIsThePlanItself) {
  for (const char* name : {"ring", "halving_doubling", "recursive_doubling", "mst"})
    for (const Plan& plan : plan_collective({.collective = Collective::allreduce, .algorithm = name, .ranks = 5}))
      EXPECT_EQ(plan::tiled(plan, 1), plan) << name;
}

TEST(Tile, MovesTheSameShareInTheSameNumberOfMessagesPerTile) {
  const Plan whole = tiled_plans("ring", 4, 1)[2], cut = tiled_plans("ring", 4, 6)[2];
  EXPECT_EQ(cut.chunks, 24U);
  EXPECT_EQ(cut.steps.size(), 6 * whole.steps.size());
}

TEST(Tile, FinishesOneTileLongBeforeTheLast) {
  const Plan plan = tiled_plans("ring", 2, 10)[0];
  const auto first_done =
      std::find_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) { return step.act == Act::receive; });
  ASSERT_NE(first_done, plan.steps.end());
  EXPECT_LT(first_done - plan.steps.begin(), 8);
}

TEST(Tile, NumberGrowsWithTheVectorAndNotForShortOnes) {
  EXPECT_EQ(plan::tiles_for(0, 2), 1U);
  EXPECT_EQ(plan::tiles_for(255 << 10, 2), 1U);
  EXPECT_EQ(plan::tiles_for(100 << 20, 2), 800U);
  EXPECT_EQ(plan::tiles_for(100 << 20, 64), 25U) << "chunks are one frame each";
}

}  // namespace
}  // namespace syncopate::collective
