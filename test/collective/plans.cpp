// Plans: refusals of the proof, prices and pictures, and the dependencies of steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "collective/plan/program.hpp"
#include "collective/replay/verify.hpp"
#include "collective/select/select.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"
#include "thrown.hpp"

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

// Each chunk ends with the contributions of both ranks, but not of the same elements.
TEST(Verify, FindsSumsOfElementsThatDoNotBelongTogether) {
  const auto swapping = [](std::uint32_t peer) {
    return Plan{.chunks = 2,
                .steps = {{Act::send, peer, 0, 1, false},
                          {Act::send, peer, 1, 1, false},
                          {Act::receive_reduce, peer, 1, 1, true},
                          {Act::receive_reduce, peer, 0, 1, true}}};
  };
  const std::string flaw = verify_plans({swapping(1), swapping(0)}, Collective::allreduce, 0);
  EXPECT_NE(flaw.find("adds chunk 0 to chunk 1"), std::string::npos) << flaw;
}

TEST(Verify, RefusesStepsOutsideTheGroup) {
  auto plans = ring_of(2);
  plans[0].steps[0].peer = 7;
  EXPECT_NE(verify_plans(plans, Collective::allreduce, 0).find("outside"), std::string::npos);
}

collective::replay::Ensemble ensemble_of(Collective collective, const char* algorithm, int ranks) {
  const collective::Choice choice = collective::select::choose({collective, algorithm, ranks}, LinkCost{});
  return collective::replay::ensemble_of(collective::plans_of(choice));
}

TEST(Ensemble, OfRotationsIsOneProgram) {
  for (const char* name : {"ring", "pairwise_exchange"})
    EXPECT_EQ(ensemble_of(Collective::allreduce, name, 7).programs.size(), 1U) << name;
  EXPECT_EQ(ensemble_of(Collective::alltoall, "pairwise_exchange", 5).programs.size(), 1U);
  for (const char* name : {"mst", "halving_doubling", "binary_tree"})
    EXPECT_EQ(ensemble_of(Collective::allreduce, name, 8).programs.size(), 8U) << name;
  EXPECT_EQ(ensemble_of(Collective::broadcast, "linear_pipeline", 5).programs.size(), 5U) << "ranks are not alike";
}

TEST(Verify, ProvesRotationsByOneOfThem) {
  for (const int ranks : {2, 3, 8, 65, 1024}) {
    for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather})
      for (const char* name : {"ring", "pairwise_exchange"})
        EXPECT_EQ(verify_plans({collective, name, ranks}), "") << name << ' ' << ranks;
    EXPECT_EQ(verify_plans({Collective::alltoall, "pairwise_exchange", ranks}), "") << ranks;
  }
}

/// The flaw that the proof finds where every rank's plan has the same defect, by one program and by all of them.
std::pair<std::string, std::string> flaws(Collective collective, const char* algorithm,
                                          const std::function<void(Plan&)>& spoil) {
  std::vector<Plan> plans = plan_collective({collective, algorithm, 5});
  for (Plan& plan : plans) spoil(plan);
  const collective::replay::Ensemble one{.programs = {collective::plan::compile(plans[0])}, .ranks = 5};
  return {collective::replay::verify(one, collective, 0), verify_plans(plans, collective, 0)};
}

TEST(Verify, RefusesRotationsWithADefectAsItRefusesAllRanksPlans) {
  const std::pair<const char*, std::function<void(Plan&)>> defects[] = {
      {"a step is missing", [](Plan& plan) { plan.steps.pop_back(); }},
      {"a round is missing", [](Plan& plan) { plan.steps.resize(plan.steps.size() - 2); }},
      {"two rounds change places",
       [](Plan& plan) { std::swap_ranges(plan.steps.begin(), plan.steps.begin() + 2, plan.steps.begin() + 2); }},
      {"a chunk arrives elsewhere",
       [](Plan& plan) { plan.steps[1].first_chunk = (plan.steps[1].first_chunk + 1) % plan.chunks; }},
      {"a round is done twice", [](Plan& plan) {
         const std::vector<PlanStep> round(plan.steps.begin(), plan.steps.begin() + 2);
         plan.steps.insert(plan.steps.begin(), round.begin(), round.end());
       }}};
  for (const auto& [defect, spoil] : defects)
    for (const char* name : {"ring", "pairwise_exchange"}) {
      const auto [by_one, by_all] = flaws(Collective::allreduce, name, spoil);
      EXPECT_EQ(by_one.empty(), by_all.empty()) << name << ": " << defect << ": '" << by_one << "', '" << by_all << "'";
      EXPECT_TRUE(std::string_view(name) != "ring" || !by_one.empty()) << defect;
    }
  const auto [by_one, by_all] = flaws(Collective::alltoall, "pairwise_exchange", [](Plan& plan) {
    for (PlanStep& step : plan.steps)
      if (step.act == Act::send) step.first_chunk = (step.first_chunk + 1) % 5;
  });
  EXPECT_NE(by_one, "");
  EXPECT_NE(by_all, "");
}

TEST(Price, OfRotationsIsThatOfAllRanksPlans) {
  // On hosts of two ranks every program is played; at equal costs that changes nothing.
  const NetworkCost cost = LinkCost{.alpha_s = 1e-4, .beta_s_per_byte = 1e-8, .gamma_s_per_byte = 1e-9};
  for (const char* name : {"ring", "pairwise_exchange"})
    for (const int ranks : {4, 6, 13}) {
      PlanRequest request{Collective::allreduce, name, ranks, 0, 100'003};
      const PlanPrice one = price_plans(request, cost);
      request.ranks_per_host = 2;
      const PlanPrice all = price_plans(request, cost);
      EXPECT_NEAR(one.predicted_s, all.predicted_s, 1e-12) << name << ' ' << ranks;
      EXPECT_EQ(one.rounds, all.rounds) << name << ' ' << ranks;
      EXPECT_EQ(one.wire_bytes_per_rank, all.wire_bytes_per_rank) << name << ' ' << ranks;
    }
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
  test::expect_words(picture, {"rank 3", "0>2", "0<0"});
}

TEST(Request, OutsideItsBoundsIsMisuseThatNamesTheAllowedValues) {
  const auto names = [](const PlanRequest& request, const char* allowed) {
    test::expect_thrown<Misuse>([&] { return plan_collective(request); }, {allowed});
  };
  names({Collective::allreduce, "zigzag", 4}, "allowed: auto, ");
  names({Collective::broadcast, "ring", 4}, "mst");
  names({Collective::broadcast, "mst", 4, 4}, "0 to 3");
  names({Collective::broadcast, "mst", 0}, "1 to");
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
