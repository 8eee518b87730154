// Plans: what the proof refuses, what prices and pictures say, and how steps find what they wait for.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "collective/plan/program.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"

namespace syncopate {
namespace {

std::vector<Plan> ring_of(int ranks) { return plan_collective({Collective::allreduce, "ring", ranks}); }

TEST(Verify, AcceptsARing) { EXPECT_EQ(verify_plans(ring_of(4), Collective::allreduce, 0), ""); }

TEST(Verify, FindsAContributionThatIsAddedTwice) {
  auto plans = ring_of(3);
  for (Plan& plan : plans) {
    const PlanStep send = plan.steps[0], receive = plan.steps[1];
    plan.steps.insert(plan.steps.begin(), {send, receive});
  }
  EXPECT_NE(verify_plans(plans, Collective::allreduce, 0).find("twice"), std::string::npos);
}

TEST(Verify, FindsAMissingStep) {
  auto plans = ring_of(4);
  for (Plan& plan : plans) plan.steps.resize(plan.steps.size() - 2);
  EXPECT_NE(verify_plans(plans, Collective::allreduce, 0), "");
}

TEST(Verify, FindsADeadlock) {
  auto plans = ring_of(4);
  std::erase_if(plans[2].steps, [](const PlanStep& step) { return step.act == Act::send; });
  EXPECT_NE(verify_plans(plans, Collective::allreduce, 0).find("never finishes"), std::string::npos);
}

TEST(Verify, FindsAWrongCompletionMark) {
  auto plans = ring_of(4);
  for (Plan& plan : plans)
    for (PlanStep& step : plan.steps) step.completes = false;
  EXPECT_NE(verify_plans(plans, Collective::allreduce, 0).find("marks chunk"), std::string::npos);
}

TEST(Verify, FindsChunksThatDoNotMeet) {
  auto plans = ring_of(4);
  plans[1].steps[1].first_chunk = (plans[1].steps[1].first_chunk + 1) % 4;
  EXPECT_NE(verify_plans(plans, Collective::allreduce, 0), "");
}

TEST(Verify, RefusesStepsOutsideTheGroup) {
  auto plans = ring_of(2);
  plans[0].steps[0].peer = 7;
  EXPECT_NE(verify_plans(plans, Collective::allreduce, 0).find("outside"), std::string::npos);
}

TEST(Price, CountsTheRoundsOfTheTextbook) {
  for (int ranks = 2; ranks <= 16; ++ranks)
    EXPECT_EQ(price_plans({Collective::allreduce, "ring", ranks, 0, 1 << 20}).rounds, 2 * (ranks - 1));
  const unsigned levels[] = {0, 0, 1, 2, 2, 3, 3, 3, 3, 4};
  for (int ranks = 2; ranks <= 9; ++ranks) {
    EXPECT_EQ(price_plans({Collective::broadcast, "mst", ranks}).rounds, levels[ranks]) << ranks;
    EXPECT_EQ(price_plans({Collective::allreduce, "mst", ranks}).rounds, 2 * levels[ranks]) << ranks;
  }
}

// Linear-pipeline paper section 3, as corrected: m + p - 2, m + p - 2, and m + max(m, p) + p - 2 steps.
TEST(Price, OfALinearPipelineHasThePapersStepCounts) {
  const auto rounds = [](Collective collective, unsigned ranks, unsigned blocks, int root) {
    return price_plans({collective, "linear_pipeline", static_cast<int>(ranks), root, 1 << 20, {.blocks = blocks}})
        .rounds;
  };
  for (unsigned p = 2; p <= 9; ++p)
    for (const unsigned m : {1U, 2U, 3U, 4U, 8U, 13U}) {
      EXPECT_EQ(rounds(Collective::broadcast, p, m, static_cast<int>(p / 2)), m + p - 2) << p << ' ' << m;
      EXPECT_EQ(rounds(Collective::reduce, p, m, static_cast<int>(p - 1)), m + p - 2) << p << ' ' << m;
      EXPECT_EQ(rounds(Collective::allreduce, p, m, 0), m + std::max(m, p) + p - 2) << p << ' ' << m;
    }
}

TEST(Price, OfHalvingDoublingMovesAsFewBytesAsARing) {
  const PlanRequest request{Collective::allreduce, "halving_doubling", 16, 0, 1 << 20};
  EXPECT_EQ(price_plans(request).wire_bytes_per_rank, 2U * 15 * (1 << 16));
}

TEST(Price, OfARingIsItsCostLaw) {
  const LinkCost link{.alpha_s = 1e-4, .beta_s_per_byte = 1e-8, .gamma_s_per_byte = 1e-9};
  const auto price = price_plans({Collective::allreduce, "ring", 8, 0, 8 << 20}, link);
  const double share = 7.0 / 8 * (8 << 20);
  EXPECT_NEAR(price.predicted_s, 14 * 1e-4 + 2 * share * 1e-8 + share * 1e-9, 1e-9);
  EXPECT_EQ(price.wire_bytes_per_rank, static_cast<std::uint64_t>(2 * share));
}

TEST(Price, AutoTakesFewLatenciesForFewBytesAndFewBytesForMany) {
  EXPECT_EQ(price_plans({Collective::allreduce, "auto", 16, 0, 4}).algorithm, "recursive_doubling");
  EXPECT_EQ(price_plans({Collective::allreduce, "auto", 6, 0, 16 << 20}).algorithm, "ring");
  EXPECT_EQ(price_plans({Collective::broadcast, "auto", 8, 0, 16 << 20}).algorithm, "linear_pipeline");
  EXPECT_EQ(price_plans({Collective::broadcast, "auto", 8, 0, 64}).algorithm, "mst");
}

TEST(Draw, ShowsEveryRankAndRound) {
  const std::string picture = draw_plans({Collective::broadcast, "mst", 4, 0, 4});
  EXPECT_NE(picture.find("rank 3"), std::string::npos);
  EXPECT_NE(picture.find("0>2"), std::string::npos);
  EXPECT_NE(picture.find("0<0"), std::string::npos);
}

TEST(Request, OutsideItsBoundsIsMisuseThatNamesTheAllowedValues) {
  const auto message = [](const PlanRequest& request) {
    try {
      static_cast<void>(plan_collective(request));
    } catch (const Misuse& misuse) {
      return std::string(misuse.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message({Collective::allreduce, "zigzag", 4}).find("allowed: auto, "), std::string::npos);
  EXPECT_NE(message({Collective::broadcast, "ring", 4}).find("mst"), std::string::npos);
  EXPECT_NE(message({Collective::broadcast, "mst", 4, 4}).find("0 to 3"), std::string::npos);
  EXPECT_NE(message({Collective::broadcast, "mst", 0}).find("1 to"), std::string::npos);
}

TEST(Program, AWriteWaitsForTheReadsBeforeIt) {
  const auto program = collective::plan::compile({2,
                                                  {{Act::send, 1, 0, 1},
                                                   {Act::send, 2, 0, 2},
                                                   {Act::receive, 1, 0, 1},
                                                   {Act::send, 1, 0, 2},
                                                   {Act::receive_reduce, 2, 1, 1}}});
  EXPECT_EQ(program.waits[0], std::vector<std::uint32_t>{});
  EXPECT_EQ(program.waits[1], std::vector<std::uint32_t>{});
  EXPECT_EQ(program.waits[2], (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(program.waits[3], (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(program.waits[4], (std::vector<std::uint32_t>{1, 3}));
}

TEST(Program, WhatWasAddedToReturnsByTheNextSendToItsSender) {
  const auto program = collective::plan::compile({2,
                                                  {{Act::receive_reduce, 1, 0, 1},
                                                   {Act::send, 1, 0, 1},  // returns it
                                                   {Act::receive_reduce, 1, 1, 1},
                                                   {Act::send, 2, 1, 1},  // goes elsewhere
                                                   {Act::receive, 1, 1, 1},
                                                   {Act::send, 1, 1, 1},  // nothing was added
                                                   {Act::receive_reduce, 1, 0, 1},
                                                   {Act::receive_reduce, 2, 0, 1},
                                                   {Act::send, 1, 0, 1},  // returns it, rank 2 added to it since
                                                   {Act::receive_reduce, 2, 0, 1},
                                                   {Act::send, 2, 0, 2}}});  // more than came
  using Returns = std::map<std::size_t, std::pair<std::uint32_t, bool>>;
  Returns returns;
  for (std::size_t i = 0; i < program.returns.size(); ++i)
    if (program.returns[i].step != collective::plan::Return::kNone)
      returns[i] = {program.returns[i].step, program.returns[i].at_once};
  EXPECT_EQ(returns, (Returns{{0, {1, true}}, {6, {8, false}}}));
}

TEST(Program, ASendLendsWhatIsNextReceivedFromItsPeer) {
  const auto program = collective::plan::compile({2,
                                                  {{Act::send, 1, 0, 1},  // lent
                                                   {Act::receive, 1, 0, 1},
                                                   {Act::send, 1, 1, 1},  // and to rank 2 besides
                                                   {Act::send, 2, 1, 1},
                                                   {Act::receive, 1, 1, 1},
                                                   {Act::send, 1, 0, 1},  // is added to
                                                   {Act::receive_reduce, 1, 0, 1},
                                                   {Act::send, 1, 0, 1},  // comes from another
                                                   {Act::receive, 2, 0, 1},
                                                   {Act::send, 1, 0, 2},  // half of it returns
                                                   {Act::receive, 1, 0, 1},
                                                   {Act::receive, 1, 1, 1},
                                                   {Act::send, 1, 0, 2},  // lent
                                                   {Act::receive, 1, 0, 2}}});
  std::vector<std::size_t> lends;
  for (std::size_t i = 0; i < program.lends.size(); ++i)
    if (program.lends[i]) lends.push_back(i);
  EXPECT_EQ(lends, (std::vector<std::size_t>{0, 12}));
}

}  // namespace
}  // namespace syncopate
