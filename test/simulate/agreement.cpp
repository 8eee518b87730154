// Agreement: under policy online ranks agree before each bucket, as the synchronizer's do; counted by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "simulate/costs.hpp"
#include "simulate/training.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {
namespace {

constexpr std::uint64_t kLayerBytes = 30 << 20;

/// Three layers: forward 1 s in all, backward 1 s each. Ready at 2, 3 and 4 s.
Profile three_layers() {
  return {.model = "three",
          .forward_s = 1,
          .layers = {{"first", kLayerBytes, 1.0}, {"middle", kLayerBytes, 1.0}, {"last", kLayerBytes, 1.0}}};
}

/// Every exchange takes `seconds`, however few bytes.
Cluster constant(int ranks, double seconds) {
  return {.ranks = ranks, .costs = {{.table = {{8, seconds}, {3 * kLayerBytes, seconds}}}}};
}

/// The exchange of a layer takes `seconds`; an agreement takes almost no time.
Cluster by_the_byte(int ranks, double seconds) {
  return {.ranks = ranks, .costs = {{.a_s = 0, .b_s_per_byte = seconds / kLayerBytes}}};
}

Simulation online(const Cluster& cluster, SimulateOptions options = {}) {
  options.policies = {"online"};
  options.timeline = true;
  return simulate_training(three_layers(), cluster, options).at(0);
}

std::vector<Span> exchanges_of(const Simulation& row) {
  std::vector<Span> spans = row.timeline;
  std::erase_if(spans, [](const Span& span) { return span.track != "exchange"; });
  return spans;
}

void expect_exchange(const Span& span, const char* layers, double begin_s, double end_s) {
  EXPECT_EQ(span.name, layers);
  EXPECT_NEAR(span.begin_s, begin_s, 1e-5);
  EXPECT_NEAR(span.end_s, end_s, 1e-5);
}

TEST(Agreement, ComesBeforeEveryBucketAndOnWhatWasReadyWhenItBegan) {
  // Last: agreed on in [2, 3.5], though the middle is ready at 3; exchanged in [3.5, 5]. Both others in [6.5, 8].
  const Simulation row = online(constant(4, 1.5));
  const std::vector<Span> exchanges = exchanges_of(row);
  ASSERT_EQ(exchanges.size(), 2U);
  expect_exchange(exchanges[0], "3", 3.5, 5);
  expect_exchange(exchanges[1], "2..1", 6.5, 8);
  EXPECT_NEAR(row.iteration_s, 8, 1e-9);
}

TEST(Agreement, IsNotForARankAlone) { EXPECT_NEAR(online(constant(1, 1.5)).iteration_s, 6.5, 1e-9); }

// The slow rank has its layers at 4, 6 and 8 s. At 4.5 s all are ready on the others: had one of those decided, middle
// and first would leave together, at 8.
TEST(Agreement, IsTheSlowestRanksWhicheverThatIs) {
  for (const int slow : {0, 1, 3}) {
    const Simulation row = online(by_the_byte(4, 0.5), {.slow_ranks = {{slow, 2.0}}});
    const std::vector<Span> exchanges = exchanges_of(row);
    ASSERT_EQ(exchanges.size(), 3U) << slow;
    expect_exchange(exchanges[0], "3", 4, 4.5);
    expect_exchange(exchanges[1], "2", 6, 6.5);
    expect_exchange(exchanges[2], "1", 8, 8.5);
    EXPECT_NEAR(row.iteration_s, 8.5, 1e-5) << slow;
  }
}

// Rank 1 has its layers at 2.5, 3.75 and 5 s. Last: entered at 2 and 2.5, agreed on at 3, exchanged until 3.5. Middle:
// entered at 3.5 and 3.75, exchanged in [4.25, 4.75], though rank 0 has all from 4 on. First: entered at 4.75 and 5.
TEST(Agreement, BeginsWhenTheLastRankEntersWhichEachDoesWithOneLayerMore) {
  const Simulation both = online(constant(2, 0.5), {.slow_ranks = {{1, 1.25}}});
  EXPECT_NEAR(both.iteration_s, 6, 1e-9);
  EXPECT_EQ(exchanges_of(both).size(), 3U);
}

TEST(Agreement, ThatIsFreeLeavesEqualRanksWithTheBareRule) {
  const schedule::Timeline timeline = simulate::timeline_of(read_profile(DATA_FOLDER "/profile/googlenet_k80.json"));
  const std::size_t bytes = bytes_of(timeline, {0, timeline.layers.size() - 1});
  for (const double cpu_s_per_byte : {0.0, 1e-9}) {
    Cluster cluster = read_cluster(DATA_FOLDER "/cluster/k80_10gbe.json");
    cluster.cpu_s_per_byte = cpu_s_per_byte;
    const schedule::Cost cost = simulate::costs::cost_of_cluster(cluster, bytes);
    const simulate::Channel channel = [&](Collective, std::uint64_t size, const std::vector<double>& called_s) {
      return std::vector<double>(called_s.size(),
                                 *std::ranges::max_element(called_s) + cost(static_cast<double>(size)));
    };
    const simulate::Agreement free = [](const std::vector<double>& entered_s) { return entered_s; };
    const simulate::Workload workload(timeline, {});
    const simulate::Training training{.timeline = timeline,
                                      .workload = workload,
                                      .channel = channel,
                                      .agreement = free,
                                      .ranks = 3,
                                      .cpu_s_per_byte = cpu_s_per_byte};
    const auto partition = schedule::policy_named("online").partition(timeline, {.cost = cost});
    EXPECT_NEAR(run_online(training, 1).back(), evaluate(timeline, partition, cost).iteration_s, 1e-9);
  }
}

TEST(Agreement, CostsAnAllReduceOfOneNumberByTheFastestAlgorithm) {
  Cluster cluster = read_cluster(DATA_FOLDER "/cluster/k80_10gbe.json");  // buckets go by ring
  const LinkCost link = *cluster.inter;
  const double round_s = link.alpha_s + 8 * (link.beta_s_per_byte + link.gamma_s_per_byte);
  EXPECT_NEAR(simulate::costs::agreement_s(cluster), 6 * round_s, 1e-3 * round_s) << "doubling: 64 ranks in 6 rounds";
  cluster.ranks = 1;
  EXPECT_EQ(simulate::costs::agreement_s(cluster), 0);
  const Cluster measured{
      .ranks = 4, .algorithm = "ring", .costs = {{.algorithm = "ring", .a_s = 5}, {.algorithm = "mst", .a_s = 3}}};
  EXPECT_NEAR(simulate::costs::agreement_s(measured), 3, 1e-9);
  EXPECT_NEAR(simulate::costs::agreement_s(measured, {.startup = 0.5}), 1.5, 1e-9);
}

}  // namespace
}  // namespace syncopate
