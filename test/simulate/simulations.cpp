// Simulations of training: equal to the prediction where all ranks are equal, counted by hand where they are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "simulate/candidate.hpp"
#include "simulate/training.hpp"
#include "syncopate/error.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {
namespace {

/// Two layers of 30 MiB: forward 1 s each, backward 2 s each.
Profile two_layers() {
  return {.model = "two", .forward_s = 2, .layers = {{"first", 30 << 20, 2.0}, {"last", 30 << 20, 2.0}}};
}

/// Any exchange of 30 MiB takes `seconds`.
Cluster measured(int ranks, double seconds) {
  return {.ranks = ranks, .costs = {{.a_s = 0, .b_s_per_byte = seconds / (30 << 20)}}};
}

Simulation simulate(const Profile& profile, const Cluster& cluster, const std::string& policy,
                    SimulateOptions options = {}) {
  options.policies = {policy};
  return simulate_training(profile, cluster, options).at(0);
}

Profile googlenet() { return read_profile(DATA_FOLDER "/profile/googlenet_k80.json"); }
Profile resnet50() { return read_profile(DATA_FOLDER "/profile/resnet50_k80.json"); }
Cluster k80(int ranks) {
  Cluster cluster = read_cluster(DATA_FOLDER "/cluster/k80_10gbe.json");
  cluster.ranks = ranks;
  return cluster;
}

TEST(Simulation, OfEqualRanksIsThePrediction) {
  Cluster cluster = k80(64);
  for (const double cpu_s_per_byte : {0.0, 1e-9}) {
    cluster.cpu_s_per_byte = cpu_s_per_byte;
    for (const Prediction& prediction : predict_policies(googlenet(), cluster))
      EXPECT_NEAR(simulate(googlenet(), cluster, prediction.policy).iteration_s, prediction.iteration_s, 1e-9)
          << prediction.policy;
  }
}

TEST(Simulation, OfOneRankExposesExactlyNothing) {
  const std::vector<Simulation> rows = simulate_training(resnet50(), k80(1));
  for (const Simulation& row : rows) EXPECT_EQ(row.exposed_s, 0) << row.policy;
}

TEST(Simulation, MessageByMessageIsTheCostLaw) {
  // A handicap of factor 1 changes nothing but gives each rank its own timeline, and runs the plans.
  for (const char* algorithm : {"ring", "halving_doubling", "mst"})
    for (const char* policy : {"wfbp", "exact_dp", "single", "dear", "online"}) {
      Cluster cluster = k80(16);
      cluster.algorithm = algorithm;
      const double law = simulate(googlenet(), cluster, policy).iteration_s;
      const double messages = simulate(googlenet(), cluster, policy, {.slow_ranks = {{5, 1.0}}}).iteration_s;
      EXPECT_NEAR(messages, law, 1e-6 * law) << algorithm << ' ' << policy;
    }
}

TEST(Simulation, HasARowPerNumberOfRanksAndPolicy) {
  const auto rows = simulate_training(googlenet(), k80(64), {.policies = {"wfbp", "single"}, .ranks = {1, 16, 64}});
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].ranks, 1);
  EXPECT_NEAR(rows[0].speedup, 1, 1e-9);
  EXPECT_NEAR(rows[0].exposed_s, 0, 1e-9);
  EXPECT_EQ(rows[5].policy, "single");
  EXPECT_NEAR(rows[5].speedup, 64 * rows[5].compute_s / rows[5].iteration_s, 1e-9);
  EXPECT_GT(rows[5].speedup, rows[4].speedup) << "at 64 the lines of Fig. 9 have crossed";
  EXPECT_LT(rows[3].speedup, rows[2].speedup);
}

TEST(Dear, HidesHalfOfTheExchangeBehindTheNextForwardPass) {
  // Backward ends at E. Scatter: last [E-2, E-0.5], first [E, E+1.5]; gather: first [.., E+3], last [.., E+4.5].
  // Forward: first [E+3, E+4], last [E+4.5, E+5.5]; backward until E+9.5.
  EXPECT_NEAR(simulate(two_layers(), measured(4, 3), "dear").iteration_s, 9.5, 1e-9);
  // wfbp: last [4, 7], first [7, 10].
  EXPECT_NEAR(simulate(two_layers(), measured(4, 3), "wfbp").iteration_s, 10, 1e-9);
}

TEST(Dear, ComputesMoreSlowlyBesideEachHalf) {
  Cluster cluster = measured(4, 1);
  // Backward of the last layer ends at R. Scatter: last [R, R+0.5], first [R+2, R+2.5]; gather: first [.., R+3], last
  // [.., R+3.5]. Forward: first [R+3, R+4], last [R+4, R+5]; backward of the last layer until R+7.
  EXPECT_NEAR(simulate(two_layers(), cluster, "dear").iteration_s, 7, 1e-9);
  // Half an exchange takes 0.25 s from computing: the first layer's gradient is ready at R+2.25. Its forward pass runs
  // while the last layer is gathered, and ends at R+2.25+1+1.25.
  cluster.cpu_s_per_byte = 0.5 / (30 << 20);
  EXPECT_NEAR(simulate(two_layers(), cluster, "dear").iteration_s, 7.5, 1e-9);
}

TEST(Dear, GoesByTheNamedAlgorithmWhereThatOffersItsHalves) {
  Cluster cluster = k80(64);
  const auto dear = [&](const char* algorithm) {
    cluster.algorithm = algorithm;
    return simulate(resnet50(), cluster, "dear");
  };
  const Simulation automatic = dear("auto"), ring = dear("ring"), doubling = dear("recursive_doubling");
  EXPECT_EQ(automatic.algorithm, "auto");
  EXPECT_EQ(ring.algorithm, "ring");
  EXPECT_GT(ring.exposed_s, 1.05 * automatic.exposed_s) << "126 latencies a bucket";
  EXPECT_EQ(doubling.algorithm, "auto") << "recursive doubling has no halves";
  EXPECT_EQ(doubling.iteration_s, automatic.iteration_s);
  EXPECT_EQ(simulate(resnet50(), cluster, "wfbp").algorithm, "recursive_doubling");
}

TEST(SlowRank, MakesAllWaitForIt) {
  const SimulateOptions slow{.slow_ranks = {{2, 1.5}}};
  EXPECT_NEAR(simulate(two_layers(), measured(4, 0), "wfbp", slow).iteration_s, 9, 1e-9);
  EXPECT_NEAR(simulate(two_layers(), measured(4, 1), "wfbp", slow).iteration_s, 10, 1e-9);
  const Simulation by_messages = simulate(googlenet(), k80(8), "exact_dp", {.slow_ranks = {{2, 1.5}}});
  EXPECT_GT(by_messages.iteration_s, 1.5 * by_messages.compute_s);
  EXPECT_LT(by_messages.iteration_s, 1.6 * by_messages.compute_s);
}

TEST(SlowRank, IsSlowForEveryReasonThatIsGiven) {
  const auto step_s = [](std::vector<Handicap> slow) {
    return simulate(two_layers(), measured(4, 1), "wfbp", {.slow_ranks = std::move(slow)}).iteration_s;
  };
  EXPECT_NEAR(step_s({{2, 1.5}, {2, 2.0}}), step_s({{2, 3.0}}), 1e-9);
}

/// In lockstep every rank waits in the slow steps, so the mean of many is 1 + share (factor - 1) times a step.
TEST(SlowRank, MayBeSlowInAShareOfItsSteps) {
  const auto step_s = [](double share) {
    return simulate(two_layers(), measured(4, 0), "wfbp", {.steps = 5000, .slow_ranks = {{2, 5.0, share}}}).iteration_s;
  };
  EXPECT_NEAR(step_s(0.1), 1.4 * step_s(1) / 5, 0.02 * step_s(1));
  EXPECT_THROW(static_cast<void>(step_s(0)), Misuse);
  EXPECT_THROW(static_cast<void>(step_s(1.1)), Misuse);
}

TEST(SlowHost, SlowsTheExchangesOfAll) {
  const double healthy = simulate(googlenet(), k80(8), "single").exposed_s;
  const double slow = simulate(googlenet(), k80(8), "single", {.slow_hosts = {{3, 3.0}}}).exposed_s;
  EXPECT_GT(slow, 1.5 * healthy);
  EXPECT_LT(slow, 3.0 * healthy);
}

TEST(SharedPort, CostsAnAlgorithmThatCrossesItWithSeveralRanksAtOnce) {
  Cluster cluster = k80(16);
  cluster.algorithm = "recursive_doubling";
  cluster.inter->gamma_s_per_byte = 0;
  const double apart = simulate(googlenet(), cluster, "single").exposed_s;
  cluster.ranks_per_host = 4;
  cluster.intra = LinkCost{.alpha_s = 0, .beta_s_per_byte = 0, .gamma_s_per_byte = 0};
  const double shared = simulate(googlenet(), cluster, "single").exposed_s;
  EXPECT_NEAR(shared, 2 * apart, 0.1 * apart) << "two rounds of four cross hosts, with four ranks on each port";
  Cluster ring = cluster;
  ring.algorithm = "ring";
  EXPECT_LT(simulate(googlenet(), ring, "single").exposed_s, 0.5 * shared);
}

/// 16 ranks on four hosts; work within hosts and reducing take no time.
Cluster four_hosts(const std::string& algorithm) {
  Cluster cluster = k80(16);
  cluster.ranks_per_host = 4;
  cluster.algorithm = algorithm;
  cluster.inter->gamma_s_per_byte = 0;
  cluster.intra = LinkCost{.alpha_s = 0, .beta_s_per_byte = 0, .gamma_s_per_byte = 0};
  return cluster;
}

Prediction predict(const Profile& profile, const Cluster& cluster, const std::string& policy) {
  return predict_policies(profile, cluster, {.policies = {policy}}).at(0);
}

TEST(SharedPort, PassesTheBytesOfAllRanksOfItsHostInAPlanToo) {
  double bytes = 0;
  for (const ProfileLayer& layer : googlenet().layers) bytes += static_cast<double>(layer.bytes);
  const Cluster cluster = four_hosts("recursive_doubling");
  const double expected_s = 2 * 4 * bytes * cluster.inter->beta_s_per_byte;  // two rounds of four ranks cross hosts
  EXPECT_NEAR(predict(googlenet(), cluster, "single").exposed_s, expected_s, 0.01 * expected_s);
}

TEST(SharedPort, CostsTheSameInPlanAndInSimulate) {
  for (const char* algorithm : {"auto", "double_binary_tree", "hierarchical", "recursive_doubling", "ring"}) {
    const Cluster cluster = four_hosts(algorithm);
    const double planned_s = predict(googlenet(), cluster, "single").exposed_s;
    EXPECT_NEAR(simulate(googlenet(), cluster, "single").exposed_s, planned_s, 1e-6 * planned_s) << algorithm;
    for (const char* policy : {"fusion", "exact_dp"}) {  // a simulated rank does not wait for others between buckets
      const double step_s = predict(googlenet(), cluster, policy).iteration_s;
      EXPECT_NEAR(simulate(googlenet(), cluster, policy).iteration_s, step_s, 0.07 * step_s) << algorithm << policy;
    }
  }
}

TEST(Noise, HasTheMeanAndTheSpreadThatWereAskedForAndNoOtherState) {
  const schedule::Timeline timeline = simulate::timeline_of(two_layers());
  const SimulateOptions options{.noise = 0.3, .seed = 7};
  const simulate::Workload workload(timeline, options);
  double sum = 0, squares = 0, count = 0;
  for (std::uint64_t step = 0; step < 5000; ++step) {
    for (const double seconds : workload.of(step, 3).backward_s) {
      sum += seconds / 2;
      squares += seconds / 2 * seconds / 2;
      ++count;
    }
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 0.3, 0.02);
  EXPECT_EQ(workload.of(4, 1).forward_s, workload.of(4, 1).forward_s);
  EXPECT_NE(workload.of(4, 1).forward_s, workload.of(4, 2).forward_s);
  EXPECT_NE(workload.of(4, 1).forward_s, workload.of(5, 1).forward_s);
}

TEST(Noise, MakesStepsLongerTheMoreRanksWaitForEachOther) {
  const auto step_s = [](int ranks) {
    return simulate(googlenet(), k80(ranks), "exact_dp", {.noise = 0.3, .steps = 5}).iteration_s;
  };
  const double few = step_s(4), many = step_s(32);
  EXPECT_GT(few, simulate(googlenet(), k80(4), "exact_dp").iteration_s);
  EXPECT_GT(many, few);
  EXPECT_EQ(many, step_s(32)) << "the same seed, the same steps";
}

TEST(Simulation, OfFourThousandRanksTakesNoTime) {
  const auto begin = std::chrono::steady_clock::now();
  const auto rows = simulate_training(resnet50(), k80(4096));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(taken.count(), 5);
  EXPECT_GE(rows.size(), 8U);
}

TEST(Simulation, RefusesWhatIsNotThere) {
  const auto refuses = [](const Cluster& cluster, const SimulateOptions& options) {
    EXPECT_THROW(static_cast<void>(simulate_training(two_layers(), cluster, options)), Misuse);
  };
  refuses(k80(4), {.policies = {"best"}});
  refuses(k80(4), {.ranks = {0}});
  refuses(k80(4), {.noise = -1});
  refuses(k80(4), {.steps = 0});
  refuses(k80(4), {.slow_ranks = {{4, 2.0}}});
  refuses(k80(4), {.slow_ranks = {{0, 0.0}}});
  refuses(k80(4), {.slow_hosts = {{-1, 2.0}}});
  refuses(measured(4, 1), {.slow_hosts = {{0, 2.0}}});
  refuses(measured(4, 1), {.ranks = {8}});
}

}  // namespace
}  // namespace syncopate
