// The optimum: exact_dp against every partition there is, Algorithm 1 against its theorem, online against its bound.
#include <gtest/gtest.h>

#include "property.hpp"
#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"

namespace syncopate::schedule {
namespace {

double step_s(std::string_view policy, const Timeline& timeline, const Cost& cost) {
  return evaluate(timeline, policy_named(policy).partition(timeline, {.cost = cost}), cost).iteration_s;
}

/// The shortest step over all 2^(L-1) partitions: if bit l is set, a bucket begins at layer l+1.
double shortest_step_s(const Timeline& timeline, const Cost& cost) {
  const std::size_t layers = timeline.layers.size();
  double shortest = std::numeric_limits<double>::infinity();
  for (std::size_t cuts = 0; cuts < std::size_t{1} << (layers - 1); ++cuts) {
    Partition partition;
    std::size_t last = layers - 1;
    for (std::size_t layer = layers - 1; layer > 0; --layer) {
      if ((cuts >> (layer - 1) & 1) == 0) continue;
      partition.push_back({layer, last});
      last = layer - 1;
    }
    partition.push_back({0, last});
    shortest = std::min(shortest, evaluate(timeline, partition, cost).iteration_s);
  }
  return shortest;
}

Timeline random_timeline(std::size_t most_layers) {
  Timeline timeline{.forward_s = static_cast<double>(*rc::gen::inRange(0, 100)), .layers = {}};
  const auto layers = *rc::gen::inRange<std::size_t>(1, most_layers + 1);
  for (std::size_t i = 0; i < layers; ++i)
    timeline.layers.push_back(
        {"layer", *rc::gen::inRange<std::size_t>(1, 100), static_cast<double>(*rc::gen::inRange(1, 60))});
  return timeline;
}

Cost random_affine() {
  return Cost::affine(*rc::gen::inRange(0, 120), static_cast<double>(*rc::gen::inRange(0, 300)) / 100);
}

/// A random table that may fall: algorithms that change with the size make jumps.
Cost random_table() {
  CostInputs inputs;
  double bytes = 0;
  const int points = *rc::gen::inRange(1, 8);
  for (int i = 0; i < points; ++i) {
    inputs.points.push_back({bytes, static_cast<double>(*rc::gen::inRange(0, 200))});
    bytes += *rc::gen::inRange(1, 200);
  }
  Cost cost = cost_model_named("table").cost(inputs);
  cost.cpu_s_per_byte = static_cast<double>(*rc::gen::inRange(0, 100)) / 100;
  return cost;
}

TEST(ExactDp, IsAsFastAsTheBestOfAllPartitionsWhateverTheCost) {
  EXPECT_TRUE(rc::check([] {
    const Timeline timeline = random_timeline(10);
    const Cost cost = *rc::gen::arbitrary<bool>() ? random_affine() : random_table();
    const double shortest = shortest_step_s(timeline, cost);
    RC_ASSERT(std::abs(step_s("exact_dp", timeline, cost) - shortest) <= 1e-9 * shortest);
  }));
}

TEST(ExactDp, IsNeverSlowerThanAnyPolicy) {
  EXPECT_TRUE(rc::check([] {
    const Timeline timeline = random_timeline(60);
    const Cost cost = random_table();
    const double optimum = step_s("exact_dp", timeline, cost);
    for (const Policy* policy : policies()) {
      const Partition partition =
          policy->partition(timeline, {.fusion_bytes = *rc::gen::inRange<std::size_t>(1, 1000), .cost = cost});
      RC_ASSERT(optimum <= evaluate(timeline, partition, cost).iteration_s * (1 + 1e-9));
    }
  }));
}

TEST(ExactDp, SendsNoMoreMessagesThanItMustAmongEquals) {
  Timeline timeline{.forward_s = 0, .layers = std::vector<Layer>(4, {"layer", 1, 1.0})};
  EXPECT_EQ(policy_named("exact_dp").partition(timeline, {.cost = Cost::affine(0, 0)}), (Partition{{0, 3}}));
}

TEST(Online, IsAtMostItsLastExchangeButOneSlowerThanTheOptimumAndNeverTwiceAsSlow) {
  EXPECT_TRUE(rc::check([] {
    const Timeline timeline = random_timeline(40);
    const Cost cost = random_affine();
    const Evaluation online = evaluate(timeline, policy_named("online").partition(timeline, {.cost = cost}), cost);
    const double optimum = step_s("exact_dp", timeline, cost);
    const std::size_t count = online.timings.size();
    const double slack = count < 2 ? 0 : cost(static_cast<double>(online.timings[count - 2].bytes));
    RC_ASSERT(online.iteration_s <= (optimum + slack) * (1 + 1e-9));
    RC_ASSERT(online.iteration_s <= 2 * optimum * (1 + 1e-9));
  }));
}

TEST(Online, SendsExactlyWhatIsReadyWhenTheChannelIsFreeThoughExchangesSlowComputing) {
  EXPECT_TRUE(rc::check([] {
    const Timeline timeline = random_timeline(20);
    const Cost cost = random_table();
    const std::vector<double> ready = ready_times(timeline);
    double free_s = 0, stretch_s = 0;
    for (const BucketTiming& timing :
         evaluate(timeline, policy_named("online").partition(timeline, {.cost = cost}), cost).timings) {
      const auto [first, last] = timing.bucket;
      RC_ASSERT(timing.begin_s <= std::max(free_s, ready[last] + stretch_s) + 1e-9);
      if (first > 0) RC_ASSERT(ready[first - 1] + stretch_s > timing.begin_s - 1e-9);
      free_s = timing.end_s;
      stretch_s += cost.cpu_s_per_byte * static_cast<double>(timing.bytes);
    }
  }));
}

TEST(Online, IsNearlyTwiceAsSlowInTheWorstCase) {
  // One long message leaves just before the rest, just as long a message, is ready: merging them costs half.
  Timeline timeline{.forward_s = 0, .layers = {{"rest", 1, 1e-3}, {"top", 1, 1e-3}}};
  const Cost cost = Cost::affine(1, 0);
  EXPECT_GT(step_s("online", timeline, cost) / step_s("exact_dp", timeline, cost), 1.99);
}

/// MG-WFBP's Theorem 1 refuted: one large gradient, then tiny ones that become ready just within a of one another.
Timeline counter_example(std::size_t tiny) {
  Timeline timeline{.forward_s = 0, .layers = std::vector<Layer>(tiny, {"tiny", 0, 0.9})};
  timeline.layers.push_back({"large", 10, 0});
  return timeline;
}

TEST(MgWfbp, IsNotOptimalOnTheCounterExampleOfThreeLayers) {
  const Timeline timeline = counter_example(2);
  const Cost cost = Cost::affine(1, 1);
  EXPECT_EQ(policy_named("mg_wfbp").partition(timeline, {.cost = cost}), (Partition{{0, 2}}));
  EXPECT_DOUBLE_EQ(step_s("mg_wfbp", timeline, cost), 12.8);
  EXPECT_EQ(policy_named("exact_dp").partition(timeline, {.cost = cost}), (Partition{{2, 2}, {0, 1}}));
  EXPECT_DOUBLE_EQ(step_s("exact_dp", timeline, cost), 12.0);
}

TEST(MgWfbp, ApproachesTwiceTheOptimumOnAChainOfTinyLayers) {
  const auto ratio = [](std::size_t tiny) {
    Timeline timeline = counter_example(tiny);
    for (Layer& layer : timeline.layers) layer.backward_s = layer.bytes > 0 ? 0 : 1 - 1e-9;
    timeline.layers.back().bytes = tiny;  // the large one travels just while the tiny ones become ready
    const Cost cost = Cost::affine(1, 1);
    return step_s("mg_wfbp", timeline, cost) / step_s("exact_dp", timeline, cost);
  };
  EXPECT_NEAR(ratio(2), 1.25, 1e-6);
  EXPECT_NEAR(ratio(4), 1.50, 1e-6);
  EXPECT_NEAR(ratio(16), 1.83, 0.005);
  EXPECT_NEAR(ratio(64), 1.95, 0.01);
}

TEST(MgWfbp, IsOptimalForTwoLayers) {
  EXPECT_TRUE(rc::check([] {
    const Timeline timeline = random_timeline(2);
    const Cost cost = random_affine();
    RC_ASSERT(step_s("mg_wfbp", timeline, cost) <= step_s("exact_dp", timeline, cost) * (1 + 1e-9));
  }));
}

/// Algorithm 1 word by word, O(L^2), all tau_c recomputed after each merge: the oracle of the O(L) entry.
Partition algorithm_1(const Timeline& timeline, double a, double b) {
  const std::size_t count = timeline.layers.size();
  std::vector<double> p(count + 1), tb(count + 1), tau_b(count + 1), tc(count + 1);
  for (std::size_t l = 1; l <= count; ++l) {
    p[l] = static_cast<double>(timeline.layers[l - 1].bytes);
    tb[l] = timeline.layers[l - 1].backward_s;
    tc[l] = a + b * p[l];
  }
  tau_b[count] = timeline.forward_s;
  for (std::size_t l = count - 1; l >= 1; --l) tau_b[l] = tau_b[l + 1] + tb[l + 1];
  tau_b[0] = tau_b[1] + tb[1];
  const auto starts = [&] {
    std::vector<double> tau_c(count + 1);
    tau_c[count] = tau_b[count] + tb[count];
    for (std::size_t l = count - 1; l >= 1; --l) tau_c[l] = std::max(tau_c[l + 1] + tc[l + 1], tau_b[l] + tb[l]);
    return tau_c;
  };
  std::vector<double> tau_c = starts();
  Partition partition;
  std::size_t last = count;
  for (std::size_t l = count; l >= 2; --l) {
    if (tau_b[l - 2] - tau_c[l] < a) {
      tc[l] = 0;
      p[l - 1] += p[l];
      tc[l - 1] = a + b * p[l - 1];
      tau_c = starts();
      continue;
    }
    partition.push_back({l - 1, last - 1});
    last = l - 1;
  }
  partition.push_back({0, last - 1});
  return partition;
}

TEST(MgWfbp, IsAlgorithm1WordByWord) {
  EXPECT_TRUE(rc::check([] {
    const Timeline timeline = random_timeline(30);
    const double a = *rc::gen::inRange(0, 120), b = static_cast<double>(*rc::gen::inRange(0, 300)) / 100;
    if (timeline.layers.size() < 2) return;
    RC_ASSERT(policy_named("mg_wfbp").partition(timeline, {.cost = Cost::affine(a, b)}) == algorithm_1(timeline, a, b));
  }));
}

}  // namespace
}  // namespace syncopate::schedule
