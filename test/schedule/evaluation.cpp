// Evaluation: the published equations on a step small enough to count by hand, and computing that is slowed down.
#include <gtest/gtest.h>

#include "property.hpp"
#include "schedule/evaluate.hpp"

namespace syncopate::schedule {
namespace {

/// Forward 10 s; backward of layers 2, 1, 0 takes 1, 2, 3 s: ready at 11, 13, 16 s.
Timeline three_layers() { return {10, {{"first", 4, 3}, {"middle", 2, 2}, {"last", 6, 1}}}; }

TEST(Evaluation, ReadyTimesAreForwardPlusTheBackwardPassesSoFar) {
  EXPECT_EQ(ready_times(three_layers()), (std::vector<double>{16, 13, 11}));
}

TEST(Evaluation, AnExchangeWaitsForItsGradientsAndForTheOneBefore) {
  const Evaluation step = evaluate(three_layers(), {{2, 2}, {1, 1}, {0, 0}}, Cost::affine(1, 0.5));
  ASSERT_EQ(step.timings.size(), 3U);
  EXPECT_DOUBLE_EQ(step.timings[0].begin_s, 11);
  EXPECT_DOUBLE_EQ(step.timings[0].end_s, 15);
  EXPECT_DOUBLE_EQ(step.timings[1].ready_s, 13);
  EXPECT_DOUBLE_EQ(step.timings[1].begin_s, 15) << "the channel was taken";
  EXPECT_DOUBLE_EQ(step.timings[1].end_s, 17);
  EXPECT_DOUBLE_EQ(step.timings[2].begin_s, 17);
  EXPECT_DOUBLE_EQ(step.iteration_s, 20);
  EXPECT_DOUBLE_EQ(step.compute_s, 16);
  EXPECT_DOUBLE_EQ(step.exposed_s, 4);
  EXPECT_DOUBLE_EQ(step.exchange_s, 9);
}

TEST(Evaluation, ABucketIsReadyWithItsFirstLayer) {
  const Evaluation step = evaluate(three_layers(), {{1, 2}, {0, 0}}, Cost::affine(1, 0.5));
  EXPECT_EQ(step.timings[0].bytes, 8U);
  EXPECT_DOUBLE_EQ(step.timings[0].begin_s, 13);
  EXPECT_DOUBLE_EQ(step.iteration_s, 21);
}

TEST(Evaluation, AFreeExchangeExposesNothing) {
  const Evaluation step = evaluate(three_layers(), {{2, 2}, {1, 1}, {0, 0}}, Cost{});
  EXPECT_DOUBLE_EQ(step.iteration_s, 16);
  EXPECT_DOUBLE_EQ(step.exposed_s, 0);
}

TEST(Evaluation, MovingBytesDelaysTheGradientsThatAreStillBeingComputed) {
  Cost cost = Cost::affine(1, 0.5);
  cost.cpu_s_per_byte = 0.25;
  // 11..15 moves 6 bytes and takes 1.5 s from computing: ready at 14.5 and 17.5 instead of 13 and 16.
  // 15..17 moves 2 bytes and takes 0.5 s: ready at 18 instead of 17.5.
  const Evaluation step = evaluate(three_layers(), {{2, 2}, {1, 1}, {0, 0}}, cost);
  EXPECT_DOUBLE_EQ(step.timings[1].begin_s, 15);
  EXPECT_DOUBLE_EQ(step.timings[2].ready_s, 18);
  EXPECT_DOUBLE_EQ(step.iteration_s, 21);
  EXPECT_DOUBLE_EQ(step.exposed_s, 5);
}

TEST(Evaluation, AnExchangeTakesAtLeastTheTimeItTakesFromComputing) {
  Cost cost = Cost::affine(0, 0.1);
  cost.cpu_s_per_byte = 0.5;
  EXPECT_DOUBLE_EQ(cost(10), 5);
}

/// The same step in small slices of time: computing runs at full speed, or slower while bytes move.
double sliced_step_s(const Timeline& timeline, const Partition& partition, const Cost& cost) {
  constexpr double kSlice = 1e-3;
  const std::vector<double> ready = ready_times(timeline);
  double now_s = 0, computed_s = 0;
  for (const Bucket& bucket : partition) {
    for (; computed_s < ready[bucket.first]; computed_s += kSlice) now_s += kSlice;
    const auto bytes = static_cast<double>(bytes_of(timeline, bucket));
    const double seconds = cost(bytes);
    now_s += seconds;
    if (seconds > 0) computed_s += seconds * (1 - cost.cpu_s_per_byte * bytes / seconds);
  }
  return now_s;
}

TEST(Evaluation, OfSlowedComputingIsWhatTimeSlicesGive) {
  EXPECT_TRUE(rc::check([] {
    Timeline timeline{.forward_s = 1.0 * *rc::gen::inRange(0, 5), .layers = {}};
    Partition partition;
    const auto layers = *rc::gen::inRange<std::size_t>(1, 8);
    for (std::size_t i = 0; i < layers; ++i)
      timeline.layers.push_back({"layer", *rc::gen::inRange<std::size_t>(1, 10), 0.5 * *rc::gen::inRange(1, 8)});
    for (std::size_t i = layers; i-- > 0;) partition.push_back({i, i});
    Cost cost = Cost::affine(0.1 * *rc::gen::inRange(0, 20), 0.1 * *rc::gen::inRange(1, 10));
    cost.cpu_s_per_byte = cost.pieces()[0].seconds_per_byte * 0.1 * *rc::gen::inRange(0, 10);
    RC_ASSERT(std::abs(evaluate(timeline, partition, cost).iteration_s - sliced_step_s(timeline, partition, cost)) <
              0.05);
  }));
}

}  // namespace
}  // namespace syncopate::schedule
