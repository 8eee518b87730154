// The planner: what it makes of measured steps, what it predicts, and when it measures again.
#include "sync/planning/planner.hpp"

#include <gtest/gtest.h>

#include "ranks.hpp"

namespace syncopate::sync::planning {
namespace {

using schedule::Cost;
using schedule::Partition;
using Review = Planner::Review;

/// Layers of 1000 bytes, a second of backward pass each.
schedule::Timeline model_of(std::size_t layers, double backward_s = 1) {
  schedule::Timeline timeline;
  for (std::size_t i = 0; i < layers; ++i) timeline.layers.push_back({"layer", 1000, backward_s});
  return timeline;
}

/// A rank's record of a step of `model` under `partition`, if exchanges take `cost`, and the rest `tail_s`.
StepRecord step_of(const schedule::Timeline& model, const Partition& partition, const Cost& cost, double tail_s) {
  const schedule::Evaluation truth = schedule::evaluate(model, partition, cost);
  StepRecord record;
  record.exchanges = truth.timings;
  record.ready_s = ready_times(model);
  for (double& ready_s : record.ready_s)
    for (const schedule::BucketTiming& timing : truth.timings)  // what begins before it delays it, and so more may
      if (timing.begin_s < ready_s - 1e-9) ready_s += cost.cpu_s_per_byte * static_cast<double>(timing.bytes);
  record.end_s = truth.iteration_s + tail_s;
  return record;
}

schedule::Timeline sizes_of(schedule::Timeline model) {
  for (schedule::Layer& layer : model.layers) layer.backward_s = 0;
  return model;
}

/// A planner whose steps take the times of `model` and `cost`.
struct Planned {
  explicit Planned(const PlannerOptions& options, schedule::Timeline of, Cost costs)
      : model(std::move(of)), cost(std::move(costs)), planner(sizes_of(model), options, {}) {}

  Review step() {
    const Partition partition =
        planner.partition().empty() ? Partition{{0, model.layers.size() - 1}} : planner.partition();
    ++steps;
    return planner.note(step_of(model, partition, cost, 0.5));
  }
  /// Until the first plan, which it adopts.
  void until_planned() {
    const int begin = steps;
    while (step() != Review::plan) ASSERT_LT(steps - begin, 20);
    planner.adopt(planner.plan());
  }
  /// Steps up to the next check.
  int until_check() {
    int count = 1;
    while (step() != Review::check && count < 3000) ++count;
    return count;
  }

  schedule::Timeline model;
  Cost cost;
  Planner planner;
  int steps = 0;
};

const PlannerOptions kExact{"exact_dp", false, 8};

TEST(Planner, MeasuresAloneThenBesideThenRunsThePolicysPartition) {
  Planned run(kExact, model_of(6), Cost::affine(0.3, 1e-3));
  EXPECT_EQ(run.planner.partition().size(), 1U) << "nothing overlapping the backward pass";
  for (int step = 0; step < 4; ++step) EXPECT_EQ(run.step(), Review::none);
  EXPECT_EQ(run.step(), Review::partition);
  EXPECT_EQ(run.planner.partition().size(), 6U) << "every gradient by itself";
  for (int step = 0; step < 3; ++step) EXPECT_EQ(run.step(), Review::none);
  EXPECT_TRUE(run.planner.is_measuring());
  EXPECT_FALSE(run.planner.forecast());
  EXPECT_EQ(run.step(), Review::plan);
  run.planner.adopt(run.planner.plan());
  EXPECT_FALSE(run.planner.is_measuring());
  EXPECT_EQ(run.planner.partition(), schedule::policy_named("exact_dp").partition(run.model, {.cost = run.cost}));
}

TEST(Planner, ForetellsStepsOfEveryPolicyWhereTheyFollowTheModel) {
  for (const schedule::Policy* policy : schedule::policies()) {
    if (policy->needs == schedule::Needs::events) continue;
    Planned run({std::string(policy->name), false, 0}, model_of(6), Cost::affine(0.7, 1e-3));
    run.until_planned();
    const double truth_s = schedule::evaluate(run.model, run.planner.partition(), run.cost).iteration_s;
    const double last = static_cast<double>(run.planner.forecast()->exchanges.timings.back().bytes) / 6000;
    const double tail_s = policy->needs == schedule::Needs::times ? 0.5 * last : 0.5;
    EXPECT_NEAR(run.planner.forecast()->step_s, truth_s + tail_s, 0.02 * truth_s) << policy->name;
  }
}

TEST(Planner, KnowsHowMuchExchangesSlowTheBackwardPass) {
  Cost cost = Cost::affine(0.1, 1e-3);
  cost.cpu_s_per_byte = 4e-4;
  Planned run(kExact, model_of(8, 2), cost);
  run.until_planned();
  const double truth_s = schedule::evaluate(run.model, run.planner.partition(), cost).compute_s;
  EXPECT_DOUBLE_EQ(run.planner.forecast()->exchanges.compute_s, truth_s) << "undisturbed times";
  const auto& timings = run.planner.forecast()->exchanges.timings;
  const auto truth = schedule::evaluate(run.model, run.planner.partition(), cost).timings;
  ASSERT_EQ(timings.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(timings[i].ready_s, truth[i].ready_s, 1e-9 * truth_s);
}

TEST(Planner, CombinesTheLatestTimesOfAllRanksAndTheShortestExchanges) {
  test::on_groups(2, [](Group& group) {
    const double rank = group.rank();
    Measurement mine{.ready_s = {1 + rank, 4 - rank},
                     .exchanges = {{100, 3 + rank}, {200, 6 - rank}},
                     .tail_s = 10 - rank,
                     .backward_s = 20 + rank,
                     .bytes_overlapping = 40 - rank};
    combine(group, mine);
    EXPECT_EQ(mine.ready_s, (std::vector<double>{2, 4}));
    EXPECT_EQ(mine.exchanges[0].seconds, 3);
    EXPECT_EQ(mine.exchanges[1].seconds, 5);
    EXPECT_EQ(mine.exchanges[1].bytes, 200);
    EXPECT_EQ(mine.tail_s, 10);
    EXPECT_EQ(mine.backward_s, 21);
    EXPECT_EQ(mine.bytes_overlapping, 39);
  });
}

TEST(Planner, TakesAGivenCostAndMeasuresTimesOnly) {
  Planned run({"mg_wfbp", true, 0}, model_of(6), Cost::affine(0.3, 1e-3));
  Planner planner(sizes_of(run.model), {"mg_wfbp", true, 0}, {.cost = Cost::affine(100, 0)});
  for (int step = 0; step < 4; ++step)
    ASSERT_EQ(planner.note(step_of(run.model, planner.partition(), run.cost, 0)), Review::none);
  ASSERT_EQ(planner.note(step_of(run.model, planner.partition(), run.cost, 0)), Review::plan);
  EXPECT_EQ(planner.plan().size(), 1U) << "by the cost that was given, all merge";
}

TEST(Planner, PlansAnewWhereLayersOrExchangesDriftByMoreThanAFifth) {
  for (const bool layers : {true, false}) {
    Planned run(kExact, model_of(6), Cost::affine(0.05, 1e-3));
    run.until_planned();
    const Partition before = run.planner.partition();
    for (int check = 0; check < 3; ++check) {
      EXPECT_EQ(run.until_check(), 8);
      EXPECT_FALSE(run.planner.has_drifted());
    }
    if (layers)
      run.model = model_of(6, 0.1);
    else
      run.cost = Cost::affine(3, 1e-3);
    EXPECT_EQ(run.until_check(), 8);
    ASSERT_TRUE(run.planner.has_drifted());
    run.planner.measure_again();
    EXPECT_TRUE(run.planner.is_measuring());
    run.until_planned();
    EXPECT_NE(run.planner.partition(), before);
    EXPECT_EQ(run.planner.partition(), schedule::policy_named("exact_dp").partition(run.model, {.cost = run.cost}));
    EXPECT_EQ(run.until_check(), 16) << "looks half as often after each";
  }
}

TEST(Planner, LeavesSmallDriftAlone) {
  Planned run(kExact, model_of(6), Cost::affine(0.05, 1e-3));
  run.until_planned();
  run.until_check();
  EXPECT_FALSE(run.planner.has_drifted());
  run.model = model_of(6, 1.15);
  run.cost = Cost::affine(0.05, 1.15e-3);
  run.until_check();
  EXPECT_FALSE(run.planner.has_drifted());
}

/// Whether a planner detects drift when layers and exchanges take `layers` and `exchanges` times as long as before.
bool drifts(double layers, double exchanges, double bytes_s = 1e-3) {
  Planned run(kExact, model_of(6), Cost::affine(0, bytes_s));
  run.until_planned();
  run.until_check();
  EXPECT_FALSE(run.planner.has_drifted());
  run.model = model_of(6, layers);
  run.cost = Cost::affine(0, bytes_s * exchanges);
  run.until_check();
  return run.planner.has_drifted();
}

TEST(Planner, SeesDriftFromAFifthOn) {
  for (const int sign : {-1, 1}) {
    EXPECT_FALSE(drifts(1 + sign * 0.19, 1)) << sign;
    EXPECT_TRUE(drifts(1 + sign * 0.21, 1)) << sign;
    EXPECT_FALSE(drifts(1, 1 + sign * 0.19)) << sign;
    EXPECT_TRUE(drifts(1, 1 + sign * 0.21)) << sign;
  }
}

// Six exchanges take 0.06 s of a step of about 6.5 s: 5 % of the step are 0.33 s.
TEST(Planner, LeavesDriftOfLessThanATwentiethOfTheStepAlone) {
  EXPECT_FALSE(drifts(1, 1 + 0.26 / 0.06, 1e-5));
  EXPECT_TRUE(drifts(1, 1 + 0.40 / 0.06, 1e-5));
}

// Two partitions of nearly equal worth: measured again, the other one looks a little better.
TEST(Planner, KeepsThePartitionThatServesUnlessAnotherIsClearlyBetter) {
  Planned run(kExact, model_of(6), Cost::affine(0.05, 1.15e-3));
  run.until_planned();
  const Partition before = run.planner.partition();
  run.cost = Cost::affine(0.05, 1.26e-3);
  const Partition best = schedule::policy_named("exact_dp").partition(run.model, {.cost = run.cost});
  ASSERT_NE(best, before) << "the example must be on the edge";
  run.planner.measure_again();
  run.until_planned();
  EXPECT_EQ(run.planner.partition(), before);
}

TEST(Planner, MeasuresDriftSinceTheLastPlan) {
  Planned run(kExact, model_of(6), Cost::affine(0.05, 1e-3));
  run.until_planned();
  run.until_check();
  EXPECT_FALSE(run.planner.has_drifted());
  run.model = model_of(6, 0.1);
  run.until_check();
  ASSERT_TRUE(run.planner.has_drifted());
  run.planner.measure_again();
  run.until_planned();
  for (int check = 0; check < 2; ++check) {
    run.until_check();
    EXPECT_FALSE(run.planner.has_drifted()) << check;
  }
}

TEST(Planner, NeverChecksWhereThatIsNotWanted) {
  Planned run({"exact_dp", false, 0}, model_of(3), Cost::affine(0.05, 1e-3));
  run.until_planned();
  for (int step = 0; step < 200; ++step) ASSERT_EQ(run.step(), Review::none);
}

}  // namespace
}  // namespace syncopate::sync::planning
