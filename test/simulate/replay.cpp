// Replays: real exchanges while ranks sleep; timelines of simulated steps; profiles that were not measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "syncopate/error.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {
namespace {

/// Forward 4 ms, backward 2 ms a layer; 64 KiB each.
Profile four_layers() {
  Profile profile{.model = "four", .forward_s = 4e-3, .layers = {}};
  for (const char* name : {"a", "b", "c", "d"}) profile.layers.push_back({name, 64 << 10, 2e-3});
  return profile;
}

/// Calls `body` on ranks that are threads of this process.
void on_ranks(int ranks, const std::function<void(Group&)>& body) {
  GroupOptions options;
  options.log.level = LogLevel::off;
  auto groups = Group::threads(ranks, options);
  std::vector<std::jthread> threads;
  for (auto& group : groups) threads.emplace_back([&] { body(*group); });
}

TEST(Replay, OfEveryPolicyLastsAtLeastItsComputingAndTheSameOnAllRanks) {
  std::vector<std::vector<double>> steps(3);
  on_ranks(3, [&](Group& group) {
    const Profile profile = four_layers();
    Replay replay(group, profile);
    const Cluster cluster{.ranks = 3, .costs = {{.a_s = 1e-3, .b_s_per_byte = 1e-9}}};
    std::vector<double>& mine = steps[static_cast<std::size_t>(group.rank())];
    for (const char* policy : {"wfbp", "single", "mg_wfbp", "exact_dp", "online", "fusion:128KiB"})
      for (const double seconds : replay.run(cluster, {.policy = policy, .steps = 2})) mine.push_back(seconds);
  });
  ASSERT_EQ(steps[0].size(), 12U);
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(steps[0], steps[2]);
  EXPECT_GE(*std::ranges::min_element(steps[0]), 12e-3);
}

TEST(Replay, MeasuresACostThatEveryRankKnows) {
  std::vector<MeasuredCost> costs(2);
  on_ranks(2, [&](Group& group) {
    costs[static_cast<std::size_t>(group.rank())] = Replay(group, four_layers()).measure("ring", 3);
  });
  EXPECT_EQ(costs[0].table, costs[1].table);
  EXPECT_EQ(costs[0].table.front().first, 8);
  EXPECT_EQ(costs[0].table.back().first, 4 * (64 << 10));
  EXPECT_EQ(costs[0].algorithm, "ring");
}

// The reduction brings the gradients of the others to rank 0, the broadcast takes the sums from there.
TEST(Replay, OfReduceBroadcastMovesTheGradientsToRankZeroAndBack) {
  constexpr std::uint64_t kGradients = 4 * (64 << 10);
  std::vector<std::vector<double>> steps(3);
  std::vector<Traffic> moved(3);
  std::vector<MeasuredCost> costs(3);
  on_ranks(3, [&](Group& group) {
    Replay replay(group, four_layers());
    const auto rank = static_cast<std::size_t>(group.rank());
    costs[rank] = replay.measure("mst", 3, "reduce_broadcast");
    const Traffic before = group.traffic();
    for (const char* policy : {"wfbp", "single", "online"})
      for (const double seconds : replay.run({.ranks = 3, .costs = {costs[rank]}},
                                             {.policy = policy, .algorithm = "mst", .exchange = "reduce_broadcast"}))
        steps[rank].push_back(seconds);
    const Traffic after = group.traffic();
    moved[rank] = {after.sent_bytes - before.sent_bytes, after.received_bytes - before.received_bytes};
  });
  EXPECT_GE(moved[0].sent_bytes, 3 * kGradients) << "the broadcasts of three steps";
  EXPECT_GE(moved[0].received_bytes, 3 * kGradients) << "their reductions";
  for (std::size_t rank = 1; rank < 3; ++rank) {
    EXPECT_GE(moved[rank].sent_bytes, 3 * kGradients) << rank;
    EXPECT_GE(moved[rank].received_bytes, 3 * kGradients) << rank;
  }
  EXPECT_EQ(costs[0].table, costs[2].table);
  EXPECT_EQ(costs[0].table.back().first, kGradients);
  ASSERT_EQ(steps[0].size(), 3U);
  EXPECT_EQ(steps[0], steps[2]);
  EXPECT_GE(*std::ranges::min_element(steps[0]), 12e-3);
}

TEST(Replay, RefusesWhatIsNotThere) {
  on_ranks(1, [&](Group& group) {
    Profile odd = four_layers();
    odd.layers[1].bytes = 6;
    EXPECT_THROW(Replay(group, odd), Misuse);
    Replay replay(group, four_layers());
    EXPECT_THROW(std::ignore = replay.run({}, {.policy = "best"}), Misuse);
    EXPECT_THROW(std::ignore = replay.run({}, {.policy = "single", .exchange = "sharded"}), Misuse);
    EXPECT_THROW(std::ignore = replay.measure("ring", 1, "sharded"), Misuse);
  });
  EXPECT_THROW(std::ignore = dilated(four_layers(), 0), Misuse);
  EXPECT_DOUBLE_EQ(dilated(four_layers(), 10).layers[2].backward_s, 2e-2);
}

TEST(Timeline, OfASimulatedStepHasWhatTheStepIsMadeOf) {
  const Cluster cluster{.ranks = 4, .costs = {{.a_s = 1e-3, .b_s_per_byte = 1e-8}}};
  const auto rows =
      simulate_training(four_layers(), cluster, {.policies = {"wfbp", "single", "online", "dear"}, .timeline = true});
  for (const Simulation& row : rows) {
    std::map<std::string, double> taken_s;
    double end_s = 0;
    for (const Span& span : row.timeline) {
      taken_s[span.track] += span.end_s - span.begin_s;
      end_s = std::max(end_s, span.end_s);
      EXPECT_GE(span.begin_s, 0) << row.policy;
      EXPECT_LE(span.begin_s, span.end_s) << row.policy;
    }
    EXPECT_NEAR(taken_s["backward"], 8e-3, 1e-9) << row.policy;
    EXPECT_NEAR(taken_s["forward"], 4e-3, 1e-9) << row.policy;
    EXPECT_GT(taken_s["exchange"], 0) << row.policy;
    EXPECT_NEAR(end_s, row.iteration_s, 1e-9) << row.policy;
  }
  EXPECT_TRUE(simulate_training(four_layers(), cluster, {.policies = {"wfbp"}}).at(0).timeline.empty());
}

TEST(DerivedProfile, HasTheArchitecturesSizesAndTheStatedThroughput) {
  const auto layers = layers_of_architecture("vgg16");
  double flops = 0, backward_s = 0;
  for (const LayerWork& layer : layers) flops += layer.flops;
  const Profile profile = derive_profile("vgg16", layers, 2e12, 32);
  std::uint64_t bytes = 0;
  for (const ProfileLayer& layer : profile.layers) backward_s += layer.backward_s, bytes += layer.bytes;
  EXPECT_EQ(profile.layers.size(), 16U);
  EXPECT_EQ(bytes, 4 * 138'357'544U);
  EXPECT_NEAR(profile.forward_s, 32 * flops / 2e12, 1e-9);
  EXPECT_NEAR(backward_s, 2 * profile.forward_s, 1e-9);
  EXPECT_GT(profile.layers[1].backward_s, profile.layers[13].backward_s) << "convolutions compute, linear layers weigh";
  EXPECT_THROW(std::ignore = layers_of_architecture("vgg17"), Misuse);
  EXPECT_THROW(std::ignore = derive_profile("vgg16", layers, 0, 32), Misuse);
}

}  // namespace
}  // namespace syncopate
