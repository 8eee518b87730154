// Segments in virtual time: the effect of cutting messages, and the cases without an effect.
#include <gtest/gtest.h>

#include <algorithm>

#include "collective/select/select.hpp"
#include "simulate/exchange.hpp"
#include "syncopate/error.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate::simulate {
namespace {

using enum Exchanger::Messages;

Network flat(int ranks, const LinkCost& link) {
  return {.ranks = ranks, .ranks_per_host = 1, .inter = link, .intra = link, .slowness = {}};
}

double exchange_s(const Network& network, const std::string& algorithm, std::uint64_t bytes,
                  Exchanger::Messages messages) {
  const std::vector<double> together(static_cast<std::size_t>(network.ranks), 0.0);
  const auto ends = Exchanger(network, messages).run({.algorithm = algorithm, .bytes = bytes}, together);
  return *std::ranges::max_element(ends);
}

/// If each message of a rank waits for the previous one, latencies do not overlap, and the engine on virtual links
/// takes the time of the replayed plans.
TEST(Segments, OfSmallMessagesThatWaitForEachOtherAreTheReplay) {
  const LinkCost link{.alpha_s = 1e-4, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 1e-9};
  for (const char* name : {"ring", "halving_doubling", "recursive_doubling", "mst"})
    for (const int ranks : {2, 4, 8, 16}) {
      const double whole_s = exchange_s(flat(ranks, link), name, 8 << 10, whole);
      EXPECT_NEAR(exchange_s(flat(ranks, link), name, 8 << 10, segments), whole_s, 1e-12) << name << ' ' << ranks;
    }
}

/// Without latency, the segments of a message have nothing to overlap with. Parts are even.
TEST(Segments, OfARingWithoutLatencyAreTheReplayWhenOneRankCallsLate) {
  const LinkCost link{.alpha_s = 0, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 1e-9};
  const Exchanger::Call call{.algorithm = "ring", .bytes = 420 * sizeof(float)};
  for (const int ranks : {2, 3, 5, 7, 12}) {
    std::vector<double> called(static_cast<std::size_t>(ranks), 0.0);
    called[1] = 2e-3;
    const auto played = Exchanger(flat(ranks, link)).run(call, called);
    const auto run = Exchanger(flat(ranks, link), segments).run(call, called);
    for (std::size_t rank = 0; rank < played.size(); ++rank)
      EXPECT_NEAR(run[rank], played[rank], 1e-12) << ranks << " ranks, rank " << rank;
  }
}

TEST(Segments, OfARingHideLatencyAndReducingBehindTheWire) {
  // A chunk of 1 MiB takes 8.39 ms on the wire; a segment of 128 KiB 1.05 ms, and waits 1 ms before: the next round's
  // first segment is there before this round's last has left. The wire never falls idle but at the two ends.
  const LinkCost link{.alpha_s = 1e-3, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 1e-9};
  const double wire_s = 6 * double(1 << 20) * link.beta_s_per_byte;
  const double cut_s = exchange_s(flat(4, link), "ring", 4 << 20, segments);
  EXPECT_GE(cut_s, (wire_s + link.alpha_s) * (1 - 1e-9));
  EXPECT_LE(cut_s, wire_s + link.alpha_s + 2 * (128 << 10) * (link.beta_s_per_byte + link.gamma_s_per_byte));
  const double whole_s = exchange_s(flat(4, link), "ring", 4 << 20, whole);
  EXPECT_NEAR(whole_s, 6 * link.alpha_s + wire_s + 3 * double(1 << 20) * link.gamma_s_per_byte, 1e-9);
  EXPECT_GT(whole_s, 1.1 * cut_s) << "far more than 1 %: this is why it is modelled";
}

TEST(Segments, OfARingWhoseLatencyOutlastsTheWireArePacedByIt) {
  // Four segments of 32 KiB a round: each round lasts alpha and one segment, for the next begins with its first.
  const LinkCost link{.alpha_s = 5e-3, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 0};
  const double segment_s = (32 << 10) * link.beta_s_per_byte;
  const double expected_s = 6 * (link.alpha_s + segment_s) + 3 * segment_s;
  EXPECT_NEAR(exchange_s(flat(4, link), "ring", 512 << 10, segments), expected_s, 1e-9);
}

TEST(Segments, AreReducedOneAfterAnother) {
  // Two ranks, four segments each way: the wire takes no time, and nothing of the all-gather waits for more than one.
  const LinkCost link{.alpha_s = 0, .beta_s_per_byte = 0, .gamma_s_per_byte = 1e-9};
  EXPECT_NEAR(exchange_s(flat(2, link), "ring", 1 << 20, segments), (1 << 19) * link.gamma_s_per_byte, 1e-12);
}

TEST(Segments, NeverBeatTheBoundAndAlwaysEnd) {
  const LinkCost link{.alpha_s = 1e-4, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 1e-9};
  for (const collective::Algorithm* entry : collective::algorithms()) {
    if (!entry->offers(Collective::allreduce)) continue;
    for (const int ranks : {1, 2, 3, 5, 8, 13}) {
      const double bound_s = 2.0 * (ranks - 1) / ranks * (1 << 20) * link.beta_s_per_byte;
      EXPECT_GE(exchange_s(flat(ranks, link), std::string(entry->name), 1 << 20, segments), bound_s * 0.999)
          << entry->name << ' ' << ranks;
      EXPECT_GE(exchange_s(flat(ranks, link), std::string(entry->name), 4, segments), 0) << entry->name;
    }
  }
}

TEST(Segments, WaitForRanksThatCallLateAndPortsThatAreSlow) {
  const LinkCost link{.alpha_s = 0, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 0};
  std::vector<double> called(4, 0.0);
  called[2] = 3;
  const auto left = Exchanger(flat(4, link), segments).run({.algorithm = "ring", .bytes = 1 << 20}, called);
  for (const double left_s : left) EXPECT_GT(left_s, 3);
  Network slow = flat(4, link);
  slow.slowness = {1, 1, 3, 1};
  const double healthy_s = exchange_s(flat(4, link), "ring", 1 << 20, segments);
  EXPECT_GT(exchange_s(slow, "ring", 1 << 20, segments), 2.5 * healthy_s);
}

TEST(SimulatedCost, IsTheSimulationBetweenItsSizesToo) {
  const Cluster cluster{.ranks = 8, .inter = LinkCost{1e-4, 8e-9, 1e-9}, .algorithm = "ring"};
  const std::vector<MeasuredCost> costs = simulate_costs(cluster, 8 << 20);
  ASSERT_EQ(costs.size(), 3U);
  EXPECT_EQ(costs[0].algorithm, "ring");
  const auto& table = costs[0].table;
  ASSERT_GT(table.size(), 20U);
  EXPECT_EQ(table.back().first, double(8 << 20));
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {
    const auto middle = static_cast<std::uint64_t>((table[i].first + table[i + 1].first) / 2) / 4 * 4;
    const double share = (static_cast<double>(middle) - table[i].first) / (table[i + 1].first - table[i].first);
    const double line_s = table[i].second + share * (table[i + 1].second - table[i].second);
    // 4 % where the number of segments jumps between two sizes.
    EXPECT_NEAR(line_s, exchange_s(flat(8, *cluster.inter), "ring", middle, segments), 0.05 * line_s) << middle;
  }
}

TEST(SimulatedCost, HasAscendingSizesOnAnyNumberOfRanks) {
  for (const int ranks : {2, 3, 4, 5}) {
    const auto costs = simulate_costs({.ranks = ranks, .inter = LinkCost{1e-4, 8e-9, 1e-9}, .algorithm = "ring"}, 4096);
    for (const MeasuredCost& cost : costs)
      for (std::size_t i = 1; i < cost.table.size(); ++i)
        EXPECT_GT(cost.table[i].first, cost.table[i - 1].first) << ranks << " ranks";
  }
}

TEST(SimulatedTraining, WithSegmentsIsWhatItsOwnCostsPredict) {
  const Profile profile = read_profile(DATA_FOLDER "/profile/googlenet_k80.json");
  const Cluster cluster{.ranks = 8, .inter = LinkCost{45e-6, 8.4e-10, 0}, .algorithm = "ring"};
  Cluster priced = cluster;
  priced.costs = simulate_costs(cluster, 4 * 13'378'280);
  const SimulateOptions options{.policies = {"wfbp", "single", "exact_dp"}, .segments = true};
  const auto rows = simulate_training(profile, cluster, options);
  const auto predicted = predict_policies(profile, priced, {.policies = options.policies});
  SimulateOptions by_messages = options;
  by_messages.slow_ranks = {{3, 1.0}};  // changes nothing, but every rank gets its own timeline and plan
  const auto each = simulate_training(profile, cluster, by_messages);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(rows[i].iteration_s, predicted[i].iteration_s, 1e-9) << rows[i].policy;
    EXPECT_NEAR(rows[i].iteration_s, each[i].iteration_s, 0.02 * each[i].iteration_s) << rows[i].policy;
  }
  EXPECT_THROW(std::ignore = simulate_training(profile, cluster, {.ranks = {129}, .segments = true}), Misuse);
  EXPECT_THROW(std::ignore = simulate_training(profile, {.ranks = 8, .costs = priced.costs}, {.segments = true}),
               Misuse);
}

}  // namespace
}  // namespace syncopate::simulate
