// A parameter server's steps in virtual time take the time of their ports' bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "syncopate/error.hpp"
#include "syncopate/foresight.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {
namespace {

constexpr double kPerByte = 8e-9;  // 1 Gbit/s

Cluster wire_of(int ranks, double alpha_s = 0, double gamma_s_per_byte = 0) {
  Cluster cluster{.ranks = ranks};
  cluster.inter = LinkCost{alpha_s, kPerByte, gamma_s_per_byte};
  return cluster;
}

/// Equal layers; the forward pass takes a third of the computing.
Profile even(std::size_t layers, std::uint64_t bytes, double compute_s) {
  Profile profile{.model = "even", .forward_s = compute_s / 3};
  for (std::size_t layer = 0; layer < layers; ++layer)
    profile.layers.push_back({std::to_string(layer), bytes / layers, compute_s * 2 / 3 / static_cast<double>(layers)});
  return profile;
}

SimulateOptions by(const std::string& flow, SimulateOptions options = {}) {
  options.policies = {flow};
  return options;
}

ServerSimulation simulated(const Profile& profile, const Cluster& cluster, const SimulateOptions& options,
                           const ServerScene& scene = {}) {
  return simulate_servers(profile, cluster, options, scene).at(0);
}

double seconds_of(const Profile& profile, const Cluster& cluster, const std::string& flow,
                  const ServerScene& scene = {}) {
  return simulated(profile, cluster, by(flow), scene).training.iteration_s;
}

// With M bytes, a host's port sends (N - 1)/N M from the worker, and M/N to each of N - 1 workers from its server: in
// all 2 (N - 1)/N M. It receives as many.
TEST(ServerSimulation, WithAServerOnEveryHostMovesWhatARingMoves) {
  for (const int ranks : {2, 3, 4, 8}) {
    const double M = 64.0 * ranks * (1 << 16), n = ranks;
    const double expected_s = 2 * (n - 1) / n * M * kPerByte;
    const Profile profile = even(64, static_cast<std::uint64_t>(M), 0);
    EXPECT_NEAR(seconds_of(profile, wire_of(ranks), "traditional"), expected_s, 1e-9) << ranks;
    for (const char* flow : {"wait_free", "front_first"}) {
      const double step_s = seconds_of(profile, wire_of(ranks), flow);
      EXPECT_GE(step_s, expected_s * (1 - 1e-9)) << flow << ranks;
      EXPECT_LE(step_s, expected_s * 1.1) << flow << ranks;
    }
  }
}

// One server on a separate host: N M bytes arrive and N M leave. With one message each way, (N + 1) M pass one after
// the other: the last worker's next push waits for its answer, and the other workers' pushes overlap later answers.
// With one message per layer, both directions overlap.
TEST(ServerSimulation, WithASingleServerWaitsForItsPort) {
  const double M = 64 * (1 << 18);
  const Profile profile = even(64, static_cast<std::uint64_t>(M), 0);
  const ServerScene scene{.servers = 1, .own_hosts = true};
  for (const int ranks : {1, 2, 4, 8}) {
    EXPECT_NEAR(seconds_of(profile, wire_of(ranks), "traditional", scene), (ranks + 1) * M * kPerByte, 1e-9) << ranks;
    const double step_s = seconds_of(profile, wire_of(ranks), "wait_free", scene);
    EXPECT_GE(step_s, ranks * M * kPerByte * (1 - 1e-9)) << ranks;
    EXPECT_LE(step_s, ranks * M * kPerByte * 1.1) << ranks;
  }
}

// K servers of their own receive N M/K each, until the workers' own ports, with M each way, are the narrowest.
TEST(ServerSimulation, WithMoreServersOfTheirOwnIsFasterUntilTheWorkersPortsAreFull) {
  const double M = 64 * (1 << 18);
  const Profile profile = even(64, static_cast<std::uint64_t>(M), 0);
  for (const auto& [servers, shares] : {std::pair(1, 4.0), std::pair(2, 2.0), std::pair(4, 1.0), std::pair(16, 1.0)}) {
    const double step_s = seconds_of(profile, wire_of(4), "wait_free", {.servers = servers, .own_hosts = true});
    EXPECT_GE(step_s, shares * M * kPerByte * (1 - 1e-9)) << servers;
    EXPECT_LE(step_s, shares * M * kPerByte * 1.15) << servers;
  }
}

// One table has half of all bytes: lpt puts it on a server of its own, whose port then has twice what an even division
// gives it.
TEST(ServerSimulation, FollowsTheLoadOfTheFullestServer) {
  const std::uint64_t unit = 1 << 20;
  Profile profile = even(24, 24 * unit, 0);
  profile.layers.push_back({"large", 24 * unit, 0});
  const auto row = [&](const char* placement) {
    return simulated(profile, wire_of(4), by("wait_free"), {.servers = 4, .own_hosts = true, .placement = placement});
  };
  const double uniform_s = row("uniform").training.iteration_s, lpt_s = row("lpt").training.iteration_s;
  EXPECT_GE(lpt_s, 4.0 * 24 * unit * kPerByte * (1 - 1e-9));
  EXPECT_LE(lpt_s, 4.0 * 24 * unit * kPerByte * 1.15);
  EXPECT_GE(uniform_s, 48.0 * unit * kPerByte * (1 - 1e-9));
  EXPECT_LE(uniform_s, 48.0 * unit * kPerByte * 1.15);
  EXPECT_NEAR(row("lpt").load_variation, std::sqrt(3.0) / 3, 1e-9) << "24, 8, 8, 8: a mean of 12";
  EXPECT_EQ(row("uniform").load_variation, 0);
}

// Streams share a port: a front layer's push does not delay the same host's answers to other workers.
TEST(ServerSimulation, OfWholeTablesKeepsTheFrontLayersFirst) {
  const Profile inception = read_profile(DATA_FOLDER "/profile/inception_v4_gtx1080.json");
  const double uniform_s = seconds_of(inception, wire_of(4), "front_first");
  EXPECT_LE(seconds_of(inception, wire_of(4), "front_first", {.placement = "lpt"}), 1.05 * uniform_s);
  EXPECT_GE(seconds_of(inception, wire_of(4), "wait_free", {.placement = "lpt"}), 1.05 * uniform_s);
}

TEST(ServerSimulation, CountsStartUpTimesAndReducing) {
  const Profile profile = even(1, 1 << 20, 0);
  const ServerScene scene{.servers = 1, .own_hosts = true};
  const double M = 1 << 20, alpha_s = 1e-3, gamma = 2e-9;
  // One message up, reduced, one down.
  EXPECT_NEAR(seconds_of(profile, wire_of(1, alpha_s, gamma), "wait_free", scene),
              2 * (alpha_s + M * kPerByte) + gamma * M, 1e-9);
}

// The thesis' measurements at the line's rate: 4 machines with a server on each, 1 Gbit/s, frames of 1538 bytes for
// 1460 of payload where `frames` is set. 2 x 3/4 of 4 bytes a parameter leave every host in a step.
struct Thesis {
  double parameters, compute_s;
};
constexpr Thesis kResNet{1'727'962, 0.0741}, kInception{42'649'769, 0.680};

double traditional_s(const Thesis& model, bool frames, double share = 1) {
  Profile profile = even(64, static_cast<std::uint64_t>(4 * model.parameters), model.compute_s);
  profile.layers.back().bytes += static_cast<std::uint64_t>(4 * model.parameters) % 64;
  Cluster cluster = wire_of(4);
  if (frames) cluster.inter->beta_s_per_byte *= 1538.0 / 1460;
  ServerScene scene;
  if (share < 1)
    for (const ProfileLayer& layer : profile.layers)
      scene.update_bytes.push_back(static_cast<std::uint64_t>(share * static_cast<double>(layer.bytes)));
  scene.answer_bytes = scene.update_bytes;
  return seconds_of(profile, cluster, "traditional", scene);
}

TEST(ServerSimulation, OfTheThesisReachesItsCeilings) {
  const auto speedup = [](const Thesis& model, double step_s) { return 4 * model.compute_s / step_s; };
  EXPECT_NEAR(speedup(kResNet, traditional_s(kResNet, false)), 1.89, 0.005);
  EXPECT_NEAR(speedup(kInception, traditional_s(kInception, false)), 1.00, 0.005);
  // Pairs of 4 + 4 bytes for one parameter of 100, both ways.
  EXPECT_NEAR(speedup(kResNet, traditional_s(kResNet, false, 0.02)), 3.91, 0.005);
  EXPECT_NEAR(speedup(kInception, traditional_s(kInception, false, 0.02)), 3.77, 0.005);
}

// With perfect overlap, a step takes the longer of computing and exchange.
TEST(ServerSimulation, OfTheThesisGainsByOverlapAsMuchAsTheLineAllows) {
  for (const auto& [model, ceiling] : {std::pair(kResNet, 1.85), std::pair(kInception, 1.315)}) {
    const double exchange_s = 1.5 * 4 * model.parameters * kPerByte * 1538 / 1460;
    const double step_s = traditional_s(model, true);
    EXPECT_NEAR(step_s / std::max(exchange_s, model.compute_s), ceiling, 0.005);
    Cluster cluster = wire_of(4);
    cluster.inter->beta_s_per_byte *= 1538.0 / 1460;
    const Profile profile = even(64, static_cast<std::uint64_t>(4 * model.parameters), model.compute_s);
    const double fifo_s = seconds_of(profile, cluster, "wait_free"),
                 front_s = seconds_of(profile, cluster, "front_first");
    EXPECT_LT(fifo_s, step_s);
    EXPECT_LT(front_s, fifo_s * 1.001);
    EXPECT_GE(front_s, exchange_s * (1 - 1e-5)) << "faster than the line";
    EXPECT_LE(front_s, exchange_s * 1.1);
  }
}

// With staleness s an update travels once in s + 1 steps.
TEST(ServerSimulation, UnderStalenessSendsOnceInSomeSteps) {
  const Profile profile = even(16, 1 << 24, 0.1);
  for (const int staleness : {0, 1, 5}) {
    const ServerSimulation row =
        simulated(profile, wire_of(4), by("front_first"), {.consistency = "ssp:" + std::to_string(staleness)});
    EXPECT_NEAR(row.exchanges, 1.0 / (staleness + 1), 1e-9) << staleness;
    EXPECT_NEAR(row.pushed_bytes, (1 << 24) / (staleness + 1.0), 1) << staleness;
    EXPECT_NEAR(row.pulled_bytes, row.pushed_bytes, 1) << staleness;
  }
  const Profile small = even(16, 1 << 20, 0.1);  // a slow network would leave no room for an exchange in every step
  const auto adaptive = [&](double significance) {
    return simulated(small, wire_of(4), by("wait_free"),
                     {.consistency = "adaptive:0.01,5", .significance = significance})
        .exchanges;
  };
  EXPECT_NEAR(adaptive(0), 1.0 / 6, 1e-9) << "nothing is significant";
  EXPECT_NEAR(adaptive(0.006), 1.0 / 2, 0.01) << "two steps are";
  EXPECT_NEAR(adaptive(0.02), 1, 0.01);
}

TEST(ServerSimulation, WithoutLockstepWaitsForNoSlowWorker) {
  const Profile profile = even(8, 1 << 12, 0.1);
  SimulateOptions noisy{.noise = 0.5, .steps = 60};
  const auto step_s = [&](const char* consistency) {
    return simulated(profile, wire_of(8), by("front_first", noisy), {.consistency = consistency}).training.iteration_s;
  };
  EXPECT_GT(step_s("bsp"), step_s("ssp:3") * 1.02);
  SimulateOptions slow;
  slow.slow_ranks = {{.which = 2, .factor = 3}};
  EXPECT_NEAR(simulated(profile, wire_of(8), by("front_first", slow)).training.iteration_s, 0.3, 0.001);
  SimulateOptions port;
  port.slow_hosts = {{.which = 1, .factor = 4}};
  const Profile large = even(8, 1 << 24, 0);
  EXPECT_NEAR(simulated(large, wire_of(4), by("traditional", port)).training.iteration_s,
              4 * seconds_of(large, wire_of(4), "traditional"), 0.25 * (1 << 24) * kPerByte);
}

TEST(ServerSimulation, OfOneWorkerIsItsComputing) {
  EXPECT_NEAR(seconds_of(even(4, 1 << 20, 0.2), wire_of(1), "traditional"), 0.2, 1e-9);
}

TEST(ServerSimulation, OfTheImpossibleIsMisuse) {
  const Profile profile = even(4, 1 << 20, 0.2);
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("sideways"))), Misuse);
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("wait_free"), {.servers = -1})), Misuse);
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("wait_free"), {.placement = "best"})), Misuse);
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("wait_free"), {.consistency = "ssp:x"})), Misuse);
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("wait_free"), {.significance = -1})), Misuse);
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("wait_free"), {.update_bytes = {1}})), Misuse);
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(0), by("wait_free"))), Misuse);
  EXPECT_THROW(static_cast<void>(simulated(profile, Cluster{.ranks = 2}, by("wait_free"))), Misuse);
  Cluster measured = wire_of(4);
  measured.costs.push_back({.a_s = 1});
  EXPECT_THROW(static_cast<void>(simulated(profile, measured, by("wait_free"))), Misuse);
  SimulateOptions options{.segments = true};
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("wait_free", options))), Misuse);
  options = {.slow_hosts = {{.which = 4, .factor = 2}}};
  EXPECT_THROW(static_cast<void>(simulated(profile, wire_of(4), by("wait_free", options))), Misuse);
}

// One block on one server: an update is encoded, sent, decoded; then an answer.
TEST(Coding, TakesItsTimeOnBothEnds) {
  constexpr double M = 1 << 18, kUp = 0.25, kDown = 0.5;
  const CodingCost updates{.encode_s_per_byte = 1e-9, .decode_s_per_byte = 3e-9},
      answers{.encode_s_per_byte = 1e-8, .decode_s_per_byte = 3e-8};
  const ServerScene scene{.servers = 1,
                          .own_hosts = true,
                          .update_bytes = {static_cast<std::uint64_t>(M * kUp)},
                          .answer_bytes = {static_cast<std::uint64_t>(M * kDown)},
                          .update_coding = updates,
                          .answer_coding = answers};
  for (const char* flow : {"traditional", "wait_free", "front_first"})
    EXPECT_NEAR(seconds_of(even(1, 1 << 18, 0), wire_of(1), flow, scene), M * (44e-9 + (kUp + kDown) * kPerByte), 1e-9)
        << flow;
}

// Workers encode and decode at the same time. The server decodes each one's packet, and encodes one answer for all.
TEST(Coding, OnTheServerIsOfEachPacketAndOfOneAnswer) {
  constexpr double M = 1 << 18;
  for (const int ranks : {2, 5}) {
    Cluster cluster = wire_of(ranks);
    cluster.inter->beta_s_per_byte = 0;
    const auto seconds = [&](const CodingCost& updates, const CodingCost& answers) {
      return seconds_of(even(1, 1 << 18, 0), cluster, "front_first",
                        {.servers = 1, .own_hosts = true, .update_coding = updates, .answer_coding = answers});
    };
    EXPECT_NEAR(seconds({.encode_s_per_byte = 1e-8}, {}), M * 1e-8, 1e-9) << ranks;
    EXPECT_NEAR(seconds({.decode_s_per_byte = 1e-8}, {}), ranks * M * 1e-8, 1e-9) << ranks;
    EXPECT_NEAR(seconds({}, {.encode_s_per_byte = 1e-8}), M * 1e-8, 1e-9) << ranks;
    EXPECT_NEAR(seconds({}, {.decode_s_per_byte = 1e-8}), M * 1e-8, 1e-9) << ranks;
  }
}

// Workers code instead of computing. The backward pass reaches the front layer last, and its forward pass is the first:
// only its coding on the server is exposed.
TEST(Coding, TakesTimeFromComputingOnWorkersAndOverlapsItOnServers) {
  constexpr double kLayer = 1 << 16;
  Cluster cluster = wire_of(1);
  cluster.inter->beta_s_per_byte = 0;
  const CodingCost coding{.encode_s_per_byte = 1e-8, .decode_s_per_byte = 2e-8};
  const ServerScene scene{.servers = 1, .own_hosts = true, .update_coding = coding, .answer_coding = coding};
  const Profile profile = even(4, 4 << 16, 1);
  EXPECT_NEAR(seconds_of(profile, cluster, "wait_free", scene), 1 + kLayer * (4 * 3e-8 + 3e-8), 1e-9);
  EXPECT_NEAR(seconds_of(profile, cluster, "traditional", scene), 1 + 4 * kLayer * 6e-8, 1e-9);
}

// With this staleness every other step is sent, and answered.
TEST(Coding, IsPaidForWhatIsSent) {
  Cluster cluster = wire_of(1);
  cluster.inter->beta_s_per_byte = 0;
  constexpr double M = 1 << 18;
  const CodingCost coding{.encode_s_per_byte = 1e-6};
  const ServerScene scene{
      .servers = 1, .own_hosts = true, .consistency = "ssp:1", .update_coding = coding, .answer_coding = coding};
  EXPECT_NEAR(seconds_of(even(1, 1 << 18, 0), cluster, "front_first", scene), M * 2e-6 / 2, 1e-9);
}

TEST(Coding, TimesAreTheClustersAndAWarningNamesThoseThatItLacks) {
  const Profile profile = even(1, 1 << 18, 0);
  Cluster cluster = wire_of(2);
  const auto simulated_with = [&](const std::string& updates, const std::string& answers) {
    return simulate_server_exchange(profile, cluster, by("front_first"), {}, updates, answers);
  };
  const SimulatedServers unknown = simulated_with("topk:0.01", "topk:0.01");
  ASSERT_EQ(unknown.warnings.size(), 1U);
  EXPECT_NE(unknown.warnings[0].find("no times of codec topk:0.01, and 0 s are assumed"), std::string::npos);
  EXPECT_EQ(simulated_with("topk:0.01", "fp16").warnings.size(), 2U);
  EXPECT_TRUE(simulated_with("none", "none").warnings.empty());
  cluster.codecs = {{.codec = "topk:0.01", .encode_s_per_byte = 1e-6, .decode_s_per_byte = 0}};
  const SimulatedServers known = simulated_with("topk:0.01", "none");
  EXPECT_TRUE(known.warnings.empty());
  EXPECT_GE(known.rows[0].training.iteration_s, (1 << 18) * 1e-6);
  EXPECT_THROW(static_cast<void>(simulated_with("topk:0.01", "never")), Misuse);
  EXPECT_THROW(
      static_cast<void>(simulated(profile, cluster, by("wait_free"), {.update_coding = {.encode_s_per_byte = -1}})),
      Misuse);
}

/// A block has at most 1 MiB, so 1000 rows of 1024 elements are four of 250 rows; each has factors of its own.
TEST(ServedCodecs, TakeTheBytesOfEachBlocksPackets) {
  const Profile profile{.layers = {{.name = "matrix", .bytes = 1000 * 1024 * 4, .rows = 1000},
                                   {.name = "of unknown rows", .bytes = 100 * 200 * 4},
                                   {.name = "small", .bytes = 400, .rows = 10}}};
  const std::vector<std::uint64_t> factors{4 * 2 * (1000 + 4 * 1024), 4 * 2 * (125 + 160), 400};
  EXPECT_EQ(expected_updates(profile, "low_rank:2"), factors);
  EXPECT_EQ(expected_updates(profile, "fp16"), (std::vector<std::uint64_t>{2'048'000, 40'000, 200}));
  EXPECT_EQ(expected_answers(profile, "fp16"), expected_updates(profile, "fp16"));
  EXPECT_TRUE(expected_updates(profile, "none").empty());
  EXPECT_THROW(static_cast<void>(expected_answers(profile, "low_rank:2")), Misuse);
  EXPECT_THROW(static_cast<void>(expected_updates(profile, "wrong")), Misuse);
}

}  // namespace
}  // namespace syncopate
