// The report's arithmetic: overlap, series, medians, axes, numbers as text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "report/page/markup.hpp"
#include "report/record/overlap.hpp"
#include "report/record/series.hpp"
#include "sample.hpp"
#include "svg/axis.hpp"

namespace syncopate::tools::report::record {
namespace {

TEST(Overlap, HiddenIsWhatRunsBesideComputing) {
  const Budget budget = budget_of(sample_spans());
  EXPECT_DOUBLE_EQ(budget.step_s, 6);
  EXPECT_DOUBLE_EQ(budget.backward_s, 2);
  EXPECT_DOUBLE_EQ(budget.exchange_s, 3);
  EXPECT_DOUBLE_EQ(budget.hidden_s, 1);
  EXPECT_DOUBLE_EQ(budget.exposed_s, 2);
  EXPECT_DOUBLE_EQ(budget.behind_backward_s, 1);
}

TEST(Overlap, TwoBucketsAtOnceCountOnce) {
  const Budget budget = budget_of({{"exchange", "a", 0, 2, 1}, {"exchange", "b", 1, 3, 1}});
  EXPECT_DOUBLE_EQ(budget.exchange_s, 3);
  EXPECT_DOUBLE_EQ(budget.exposed_s, 3);
}

TEST(Overlap, ABlockedRankDoesNotCompute) {
  const Budget budget = budget_of({{"backward", "a", 0, 4, 0}, {"wait", "wait", 1, 3, 0}, {"exchange", "b", 0, 4, 1}});
  EXPECT_DOUBLE_EQ(budget.exposed_s, 2);
  EXPECT_DOUBLE_EQ(budget.hidden_s, 2);
}

/// From backward pass to backward pass: reductions [1, 3], an update [3, 4], broadcasts [4, 8], forward [2, 9] with a
/// wait [2, 5].
std::vector<Span> weights_spans() {
  return {{"backward", "a", 0, 2, 0},     {"exchange", "a", 1, 3, 8},  {"update", "a", 3, 4, 0},
          {"wait", "a", 2, 5, 0},         {"broadcast", "a", 4, 6, 8}, {"broadcast", "b", 6, 8, 8},
          {"forward", "forward", 2, 9, 0}};
}

TEST(Overlap, WeightsOnTheirWayAreCommunicationAndUpdatesBesideItAreNotComputing) {
  const Budget budget = budget_of(weights_spans());
  EXPECT_DOUBLE_EQ(budget.exchange_s, 6);
  EXPECT_DOUBLE_EQ(budget.behind_backward_s, 1);
  EXPECT_DOUBLE_EQ(budget.behind_forward_s, 3);
  EXPECT_DOUBLE_EQ(budget.hidden_s, 4);
  EXPECT_DOUBLE_EQ(budget.forward_s, 4) << "a pass does not count what it waited";
}

TEST(Overlap, CopiesAreNeitherComputingNorCommunication) {
  const Budget budget = budget_of({{"backward", "a", 0, 1, 0},
                                   {"copy down", "a", 0.5, 1.5, 8},
                                   {"exchange", "a", 1, 4, 8},
                                   {"copy up", "a", 3, 5, 8}});
  EXPECT_DOUBLE_EQ(budget.exchange_s, 3);
  EXPECT_DOUBLE_EQ(budget.exposed_s, 3) << "a copy computes nothing";
  EXPECT_DOUBLE_EQ(budget.copy_s, 3);
  EXPECT_DOUBLE_EQ(budget.hidden_copy_s, 0.5) << "the part of the copy down during the backward pass";
}

TEST(Overlap, AStepThatGoesOnIntoTheNextForwardPassIsKnownByItsOrder) {
  auto run = sample_run(2, 4);
  EXPECT_FALSE(starts_with_backward(run));
  for (RankRecord& rank : run.ranks) rank.spans = weights_spans();
  EXPECT_TRUE(starts_with_backward(run));
}

TEST(Overlap, WhatIsTakenOutIsGoneAndTheRestStays) {
  const Intervals rest = without({{0, 4}, {5, 9}}, {{1, 2}, {3, 6}, {8, 12}});
  ASSERT_EQ(rest.size(), 3u);
  EXPECT_DOUBLE_EQ(rest[0].end, 1);
  EXPECT_DOUBLE_EQ(rest[1].begin, 2);
  EXPECT_DOUBLE_EQ(rest[2].begin, 6);
  EXPECT_DOUBLE_EQ(length(rest), 4);
  EXPECT_TRUE(merged({{2, 2}, {3, 1}}).empty());
}

TEST(Overlap, BucketsAreMatchedInTheOrderOfTheirExchange) {
  const std::vector<BucketCost> costs = bucket_costs(sample_run(2, 4));
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_DOUBLE_EQ(costs[0].seconds, 2);
  EXPECT_DOUBLE_EQ(costs[0].exposed_s, 1);
  EXPECT_DOUBLE_EQ(costs[1].exposed_s, 1);
}

TEST(Series, ClocksAreComparedAtTheTimesOfTheirSteps) {
  record::Run run;
  run.ranks.resize(2);
  for (int step = 1; step <= 4; ++step) {
    run.ranks[0].steps.push_back({.step = static_cast<double>(step), .step_s = 1});
    run.ranks[1].steps.push_back({.step = static_cast<double>(step), .step_s = 1.75});
  }
  std::vector<std::pair<double, double>> spread;
  for (const Point& point : clock_spread(run)) spread.emplace_back(point.x, point.y);
  // The slow one has ended 1 step at 1.75 s, 2 at 3.5 s.
  EXPECT_EQ(spread, (std::vector<std::pair<double, double>>{{1, 1}, {2, 1}, {3, 2}, {4, 2}}));
}

TEST(Series, TheClocksSpreadGoesByTheTimesAtWhichStepsEnded) {
  auto run = sample_run(2, 0);
  for (int step = 1; step <= 3; ++step)  // rank 0 evaluates between its steps, which then are short and late
    for (RankRecord& rank : run.ranks)
      rank.steps.push_back(
          {.step = static_cast<double>(step), .time = 1e9 + step, .step_s = &rank == &run.ranks[0] ? 0.01 : 1});
  for (const Point& point : clock_spread(run)) EXPECT_LE(point.y, 1) << point.x;
}

TEST(Series, ThinningKeepsEverySpikeAndTheOrder) {
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({static_cast<double>(i), i == 71'234 ? 9.0 : std::sin(i * 1e-3)});
  const std::vector<Point> thin = thinned(points);
  EXPECT_LE(thin.size(), 2000u);
  EXPECT_DOUBLE_EQ(std::ranges::max(thin, {}, &Point::y).y, 9);
  EXPECT_TRUE(std::ranges::is_sorted(thin, {}, &Point::x));
  EXPECT_EQ(thinned({{1, 1}, {2, 2}}).size(), 2u);
}

TEST(Series, TheRunningMeanIsCentred) {
  std::vector<Point> line;
  for (int i = 0; i < 50; ++i) line.push_back({static_cast<double>(i), 3.0 * i});
  const std::vector<Point> mean = running_mean(line, 5);
  ASSERT_EQ(mean.size(), line.size());
  for (std::size_t i = 2; i + 2 < line.size(); ++i) EXPECT_NEAR(mean[i].y, line[i].y, 1e-9);
}

TEST(Series, UnknownValuesAreLeftOut) {
  auto run = sample_run(2, 4);
  run.ranks[0].steps[1].loss = kUnknown;
  run.ranks[0].steps[2].loss = run.ranks[1].steps[2].loss = kUnknown;
  const std::vector<Point> losses = over_steps(run, &Step::loss);
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_DOUBLE_EQ(losses[1].y, 2.0 / 3);
  EXPECT_DOUBLE_EQ(losses[2].x, 4);
}

TEST(Series, WarmUpDoesNotCountInLongRuns) {
  RankRecord rank = sample_run(1, 6).ranks[0];
  rank.steps[0].step_s = 100;
  EXPECT_DOUBLE_EQ(spread(rank, &Step::step_s).max, 6);
  EXPECT_DOUBLE_EQ(spread(rank, &Step::step_s).n, 3);
  rank.steps.resize(5);
  EXPECT_DOUBLE_EQ(spread(rank, &Step::step_s).max, 100);
}

TEST(Series, TheMedianOfAnEvenCountIsBetweenTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({5, kUnknown, 1, 3}), 3);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Axis, TicksAreRoundAndInside) {
  for (const auto& [low, high] : {std::pair{0.0, 1.0}, {0.0, 97.3}, {1.0, 100'000.0}, {-3e-5, 2e-5}, {7.0, 7.0}}) {
    const svg::Axis tight = svg::axis(low, high, 6), wide = svg::round_axis(low, high, 6);
    ASSERT_GE(tight.ticks.size(), 2u);
    ASSERT_LE(wide.ticks.size(), 14u);
    EXPECT_GE(tight.ticks.front(), tight.low - 1e-9);
    EXPECT_LE(wide.low, low + std::abs(low) * 1e-9);
    EXPECT_GE(wide.high, high - std::abs(high) * 1e-9);
  }
}

TEST(Markup, NumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(page::decimal(9'231'114), "9,231,114");
  EXPECT_EQ(page::decimal(999), "999");
  EXPECT_EQ(page::decimal(-1234.5, 1), "−1,234.5");
  EXPECT_EQ(page::decimal(-0.001, 1), "0.0");
  EXPECT_EQ(page::decimal(kUnknown), "–");
  EXPECT_EQ(page::px(12.50), "12.5");
  EXPECT_EQ(page::px(-0.001), "0");
  EXPECT_EQ(page::time_unit(0.61)(0.61), "610 ms");
  EXPECT_EQ(page::time_unit(0.0342)(0.0342), "34.2 ms");
  EXPECT_EQ(page::time_unit(870e-6)(870e-6), "870 µs");
  EXPECT_EQ(page::counted(1, "rank"), "1 rank");
}

}  // namespace
}  // namespace syncopate::tools::report::record
