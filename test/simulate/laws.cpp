// The cost of an exchange with a codec is the sum of its legs and its coding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "laws/coders.hpp"
#include "simulate/costs.hpp"
#include "syncopate/error.hpp"
#include "syncopate/simulate.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

constexpr double kAlpha = 1e-5, kBeta = 8e-9;  // 1 Gbit/s
constexpr std::uint64_t kBytes = 40'000'000;

Cluster cluster_of(int ranks, int ranks_per_host = 1) {
  Cluster cluster{.ranks = ranks, .ranks_per_host = ranks_per_host};
  cluster.inter = LinkCost{kAlpha, kBeta, 0};
  cluster.intra = LinkCost{1e-6, 0.1e-9, 0};
  return cluster;
}

const std::vector<Gradient> kModel{{.name = "fc", .elements = 9'990'000, .rows = 3330},
                                   {.name = "bias", .elements = 100}};

ExchangeLaw law_of(const std::string& codec, const std::string& exchange, const Cluster& cluster) {
  return exchange_law(kModel, {.coding = {.codec = codec}, .exchange = exchange}, cluster);
}

double cost_s(const Cluster& cluster, const ExchangeLaw& law) {
  return simulate::costs::cost_of_law(cluster, law, kBytes)(kBytes);
}

TEST(ExchangeLaw, OfNoCodecIsThePlainAllReduce) {
  const Cluster cluster = cluster_of(4);
  EXPECT_TRUE(law_of("none", "allreduce", cluster).legs.empty());
  EXPECT_DOUBLE_EQ(cost_s(cluster, {}), simulate::costs::cost_of_cluster(cluster, kBytes)(kBytes));
}

// An all-reduce takes 2 (N - 1)/N M beta; half the elements' size takes half.
TEST(ExchangeLaw, OfHalfPrecisionIsHalfTheBytes) {
  const Cluster cluster = cluster_of(4);
  const double dense_s = 1.5 * kBytes * kBeta;
  EXPECT_NEAR(cost_s(cluster, {}), dense_s, 0.01 * dense_s);
  EXPECT_NEAR(cost_s(cluster, law_of("fp16", "allreduce", cluster)), dense_s / 2, 0.01 * dense_s);
}

// N - 1 packets arrive at every port: 99 900 values of 4 bytes and indices of about 8.1 bits.
TEST(ExchangeLaw, OfTopKIsAGatherOfPacketsThatGrowsWithTheRanks) {
  for (const int ranks : {2, 4, 16}) {
    const Cluster cluster = cluster_of(ranks);
    const double packet = 99'900 * (4 + 8.1 / 8), expected_s = (ranks - 1) * packet * kBeta;
    EXPECT_NEAR(cost_s(cluster, law_of("topk:0.01", "allreduce", cluster)), expected_s, 0.05 * expected_s + 1e-3)
        << ranks;
  }
}

double cost_with_density(const std::string& codec, double density) {
  std::vector<Gradient> model = kModel;
  for (Gradient& gradient : model) gradient.density = density;
  const Cluster cluster = cluster_of(4);
  return cost_s(cluster, exchange_law(model, {.coding = {.codec = codec}}, cluster));
}

// 1/FLUSH of the elements is flushed; values take 1.5 x 4 bytes a rank, and the mask about a byte.
TEST(ExchangeLaw, OfImportanceGoesByTheTargetOrTheMeasuredDensity) {
  for (const double density : {0.01, 0.1}) {
    const std::string flushed = fmt::format("importance:auto:{},1,300", density);
    const double all = 1 - (1 - density) * (1 - 1.0 / 300);
    const double expected_s = 9'990'000 * (all * 6 + density * 0.9) * kBeta;
    EXPECT_NEAR(cost_with_density(flushed, 0), expected_s, 0.1 * expected_s);
    EXPECT_NEAR(cost_with_density("importance:1,1,300", all), cost_with_density(flushed, 0), 1e-3 * expected_s);
    EXPECT_LT(cost_with_density(fmt::format("importance:auto:{}", density), 0), cost_with_density(flushed, 0));
  }
  EXPECT_EQ(cost_with_density("importance:auto:0.01", 0.5), cost_with_density("importance:auto:0.01", 0))
      << "the target counts";
  EXPECT_GT(cost_with_density("threshold:0.1", 0.05), 3 * cost_with_density("threshold:0.1", 0.01));
}

TEST(ExchangeLaw, SaysWhetherTheDensityIsKnown) {
  const Cluster cluster = cluster_of(4);
  for (const std::string codec : {"none", "topk:0.01", "importance:auto:0.01"})
    EXPECT_TRUE(law_of(codec, "allreduce", cluster).density_is_known) << codec;
  for (const std::string codec : {"importance:1", "threshold:0.1"}) {
    EXPECT_FALSE(law_of(codec, "allreduce", cluster).density_is_known) << codec;
    std::vector<Gradient> known = kModel;
    for (Gradient& gradient : known) gradient.density = 0.02;
    EXPECT_TRUE(exchange_law(known, {.coding = {.codec = codec}}, cluster).density_is_known) << codec;
  }
}

// A packet passes log2 N levels of a tree one after the other, and then reaches all ranks through every port once.
TEST(ExchangeLaw, OfMergedPacketsGrowsWithTheLevelsOfTheTree) {
  for (const auto& [ranks, levels] : {std::pair(2, 1), std::pair(4, 2), std::pair(5, 3), std::pair(16, 4)}) {
    const Cluster cluster = cluster_of(ranks);
    const double packet = 99'900 * (4 + 8.1 / 8);
    const double expected_s = (levels + (ranks - 1.0) / ranks) * packet * kBeta;
    EXPECT_NEAR(cost_s(cluster, law_of("gtopk:0.01", "allreduce", cluster)), expected_s, 0.05 * expected_s + 1e-3)
        << ranks;
  }
}

// Within a host the messages of the tree take its own links.
TEST(ExchangeLaw, OfMergedPacketsKnowsTheLinksOfEachLevel) {
  const Cluster cluster = cluster_of(4, 2);
  const ExchangeLaw law = law_of("gtopk:0.01", "allreduce", cluster);
  const double packet = 99'900 * (4 + 8.1 / 8);
  EXPECT_NEAR(cost_s(cluster, law), packet * (0.1e-9 + kBeta * (1 + 0.75)), 0.1 * packet * kBeta + 1e-3);
  EXPECT_EQ(law_of("gtopk:0.01", "reduce_broadcast", cluster).legs.size() + 1, law.legs.size())
      << "all-gather of lengths and packet, but one broadcast of weights";
}

// Two hosts: every rank codes its part of the gradient, and the packets of a host's ranks leave through one port.
TEST(ExchangeLaw, OfHierarchicalExchangesCrossesTheNetworkOncePerHost) {
  const double packet = 99'900 * (4 + 8.1 / 8);
  for (const double per_host : {1, 2, 8}) {
    const Cluster cluster = cluster_of(2 * static_cast<int>(per_host), static_cast<int>(per_host));
    const double within_s = 2 * (1 - 1 / per_host) * kBytes * 0.1e-9;
    EXPECT_NEAR(cost_s(cluster, law_of("topk:0.01", "hierarchical", cluster)), packet * kBeta + within_s, 1e-3);
    EXPECT_NEAR(cost_s(cluster, law_of("none", "hierarchical", cluster)), kBytes * kBeta + within_s, 1e-3) << per_host;
  }
}

TEST(ExchangeLaw, CountsCodingPerPacketThatIsDecoded) {
  Cluster cluster = cluster_of(4);
  cluster.codecs = {{.codec = "topk:0.01", .encode_s_per_byte = 1e-9, .decode_s_per_byte = 2e-10}};
  const double without_s = cost_s(cluster_of(4), law_of("topk:0.01", "allreduce", cluster_of(4)));
  const double with_s = cost_s(cluster, law_of("topk:0.01", "allreduce", cluster));
  EXPECT_NEAR(with_s - without_s, kBytes * (1e-9 + 4 * 2e-10), 1e-6);
}

/// Bytes of the answers to a codec's last round of a step, which one rank decodes.
std::size_t decoded_bytes(const std::string& codec, int ranks) {
  laws::Coders coders(laws::with_residual(codec), {{.rows = 96, .columns = 96}}, ranks);
  coders.fill([](std::size_t rank, std::size_t, std::size_t i) {
    return static_cast<float>(40 * base::CounterRandom{rank}.uniform(i) -
                              20);  // weights are 1: importance selects most
  });
  std::size_t bytes = 0;
  for (coders.begin(); coders[0].round; coders.answer_all()) {
    bytes = coders[0].round->payload.bytes().size();
    if (coders[0].round->combine != compress::Combine::gather) continue;
    bytes = 0;
    const auto answers = coders.answers();
    for (const laws::Payload& payload : answers[0]) bytes += payload.size();
  }
  return bytes;
}

// `fit --codec` measures the time of decoding on one rank; the law multiplies it by the payloads that a rank decodes.
TEST(ExchangeLaw, CountsThePayloadsThatEachCodecDecodes) {
  constexpr int kMost = 4;
  const std::vector<Gradient> model{{.name = "fc", .elements = 96 * 96, .rows = 96}};
  for (const compress::Codec* codec : compress::codecs()) {
    const std::string name(codec->name);
    if (name == "none") continue;
    Cluster cluster = cluster_of(kMost);
    cluster.codecs = {{.codec = name, .encode_s_per_byte = 0, .decode_s_per_byte = 1}};
    const double counted =
        exchange_law(model, {.coding = {.codec = name, .dense_below = 1}}, cluster).coding_s_per_byte;
    const double decoded =
        static_cast<double>(decoded_bytes(name, kMost)) / static_cast<double>(decoded_bytes(name, 1));
    EXPECT_NEAR(counted, decoded, 0.15 * decoded) << name;
  }
}

// ResNet-50 by `importance` on the 96 ranks of its paper: a step without computing is the measured coding plus the
// exchange. Measured: encode + decode of `syncopate bench codec --feedback residual` at this size, on one core. Values
// cross a port 2 (N - 1)/N times, the one mask (N - 1)/N times.
TEST(ExchangeLaw, OfImportanceOn96RanksIsMeasuredCodingPlusTheExchange) {
  constexpr std::uint64_t kElements = 25'557'032;
  struct Case {
    double density, index_bits, coding_s;
  };
  const Cluster cluster = read_cluster(DATA_FOLDER "/cluster/gtx1080ti_1gbit.json");
  const Profile profile{.model = "ResNet-50",
                        .layers = {{.name = "all", .bytes = kElements * sizeof(float), .backward_s = 1e-9}}};
  for (const Case& of : {Case{0.017, 7.4, 0.150}, Case{0.021, 7.1, 0.158}}) {
    const std::vector<Gradient> model{{.name = "all", .elements = kElements}};
    const auto law = [&](int, int) {
      return exchange_law(model, {.coding = {.codec = fmt::format("importance:auto:{}", of.density)}}, cluster);
    };
    const double sent = of.density * kElements * 95 / 96;
    const double exchange_s = sent * (2 * 4 + of.index_bits / 8) * cluster.inter->beta_s_per_byte;
    const Simulation step = simulate_training(profile, cluster, {.policies = {"single"}, .law = law}).front();
    const double expected_s = of.coding_s + exchange_s;
    EXPECT_EQ(step.ranks, 96);
    EXPECT_NEAR(step.iteration_s, expected_s, 0.1 * expected_s) << of.density;
  }
}

// The incomplete last host takes part in what runs between hosts.
TEST(ExchangeLaw, CountsAnIncompleteHost) {
  EXPECT_DOUBLE_EQ(cost_s(cluster_of(10, 4), law_of("none", "hierarchical", cluster_of(10, 4))),
                   cost_s(cluster_of(12, 4), law_of("none", "hierarchical", cluster_of(12, 4))));
}

// A ring's reduce-scatter and all-gather on 16 ranks have 15 start-up times each; other algorithms have fewer.
TEST(ExchangeLaw, GoesByTheNamedAlgorithm) {
  Cluster cluster = cluster_of(16);
  const auto startup_s = [&](const char* algorithm, const char* exchange) {
    cluster.algorithm = algorithm;
    return simulate::costs::cost_of_law(cluster, law_of("none", exchange, cluster), kBytes).startup_s();
  };
  EXPECT_NEAR(startup_s("ring", "sharded"), 30 * kAlpha, kAlpha);
  EXPECT_LT(startup_s("auto", "sharded"), 15 * kAlpha);
  EXPECT_NE(startup_s("mst", "reduce_broadcast"), startup_s("linear_pipeline", "reduce_broadcast"));
}

TEST(ExchangeLaw, RefusesWhatDoesNotFit) {
  EXPECT_THROW(std::ignore = law_of("topk:2", "allreduce", cluster_of(4)), Misuse);
  Cluster within = cluster_of(4, 2);
  within.inter.reset();
  EXPECT_THROW(std::ignore = cost_s(within, law_of("topk:0.01", "hierarchical", within)), Misuse);
}

/// One layer: its exchange cannot be hidden, so that a step takes computing and exchange.
TEST(Predictions, FollowTheLawOfTheExchange) {
  const Profile profile{
      .model = "one layer", .forward_s = 0.1, .layers = {{.name = "fc", .bytes = kBytes, .backward_s = 0.2}}};
  const Cluster cluster = cluster_of(4);
  const auto law = [&](int ranks, int ranks_per_host) {
    Cluster here = cluster;
    here.ranks = ranks;
    here.ranks_per_host = ranks_per_host;
    return law_of("topk:0.01", "allreduce", here);
  };
  const double expected_s = 0.3 + cost_s(cluster, law(4, 1));
  EXPECT_NEAR(predict_policies(profile, cluster, {.policies = {"single"}, .law = law}).front().iteration_s, expected_s,
              1e-6);
  const auto simulated = simulate_training(profile, cluster, {.policies = {"single"}, .ranks = {4, 8}, .law = law});
  EXPECT_NEAR(simulated[0].iteration_s, expected_s, 1e-3);
  EXPECT_NEAR(simulated[1].iteration_s - 0.3, cost_s(cluster_of(8), law(8, 1)), 1e-3);
  EXPECT_THROW(std::ignore = simulate_training(profile, cluster, {.slow_hosts = {{0, 2}}, .law = law}), Misuse);
}

/// Exchanges and coding take processor time from the backward pass; plan and simulate charge the same.
TEST(Predictions, OfPlanAndSimulateAreEqualWithACodec) {
  Profile profile{.model = "ten layers", .forward_s = 0.1, .layers = {}};
  for (int i = 0; i < 10; ++i) profile.layers.push_back({.name = "fc", .bytes = kBytes / 10, .backward_s = 0.02});
  Cluster cluster = cluster_of(4);
  cluster.cpu_s_per_byte = 1e-9;
  cluster.codecs = {{.codec = "topk:0.01", .encode_s_per_byte = 1e-9, .decode_s_per_byte = 2e-10}};
  const auto law = [&](int, int) { return law_of("topk:0.01", "allreduce", cluster); };
  const std::vector<std::string> policies{"single", "wfbp", "fusion", "exact_dp"};
  const auto planned = predict_policies(profile, cluster, {.policies = policies, .law = law});
  const auto simulated = simulate_training(profile, cluster, {.policies = policies, .law = law});
  for (std::size_t i = 0; i < policies.size(); ++i)
    EXPECT_NEAR(simulated[i].iteration_s, planned[i].iteration_s, 1e-6) << policies[i];
}

// Ranks that share ports have costs in many pieces; the last one begins in the upper half of the sizes.
TEST(ExchangeCost, EndsWithTheTimeOfAllBytes) {
  Cluster cluster = cluster_of(16, 4);
  cluster.algorithm = "recursive_doubling";
  const ExchangeCost cost = exchange_cost(cluster, 16, kBytes);
  EXPECT_EQ(cost.table.back().first, kBytes);
  EXPECT_DOUBLE_EQ(cost.table.back().second, cost_s(cluster, {}));
}

TEST(ClusterFiles, HoldWhatCodingTakes) {
  const Cluster cluster = parse_cluster(
      R"({"ranks": 2, "links": {"inter": {"alpha_s": 1e-5, "beta_s_per_byte": 8e-9, "gamma_s_per_byte": 0}},
          "codecs": {"topk:0.01": {"encode_s_per_byte": 1e-10, "decode_s_per_byte": 2e-11}}})",
      "c.json");
  ASSERT_EQ(cluster.codecs.size(), 1U);
  EXPECT_EQ(cluster.codecs[0].codec, "topk:0.01");
  EXPECT_EQ(cluster.codecs[0].decode_s_per_byte, 2e-11);
}

}  // namespace
}  // namespace syncopate
