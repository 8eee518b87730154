// Phases of an exchange: their times are those of the whole exchange, and their bytes those of its formulas.
#include <gtest/gtest.h>

#include "syncopate/foresight.hpp"
#include "syncopate/predict.hpp"

namespace syncopate {
namespace {

/// 4 hosts of 2 ranks; within a host everything is ten times as fast.
Cluster hosts() {
  Cluster cluster{.ranks = 8, .ranks_per_host = 2, .algorithm = "ring"};
  cluster.inter = {.alpha_s = 1e-4, .beta_s_per_byte = 1e-9};
  cluster.intra = {.alpha_s = 1e-5, .beta_s_per_byte = 1e-10};
  cluster.codecs = {{.codec = "topk:0.01", .encode_s_per_byte = 2e-9, .decode_s_per_byte = 1e-10}};
  return cluster;
}

constexpr std::uint64_t kExchanged = 4 << 20;

ComparedPolicies compared(const std::string& exchange, const std::string& codec) {
  Profile profile{.model = "one layer", .layers = {{.name = "layer", .bytes = kExchanged, .backward_s = 1e-3}}};
  return compare_policies(profile, hosts(),
                          {.policies = {"single"}, .exchange = {.codec = codec, .exchange = exchange}});
}

TEST(ExchangePhases, OfHierarchicalReductionAreThree) {
  const std::vector<ExchangePhase> phases = compared("hierarchical", "none").phases;
  ASSERT_EQ(phases.size(), 3U);
  EXPECT_EQ(phases[0].what, "reduce_scatter within hosts");
  EXPECT_EQ(phases[1].what, "allreduce between hosts");
  EXPECT_EQ(phases[2].what, "allgather within hosts");
  EXPECT_EQ(phases[0].bytes, kExchanged);
  EXPECT_EQ(phases[1].bytes, kExchanged / 2) << "each of a host's two ranks exchanges its half";
  EXPECT_EQ(phases[2].bytes, kExchanged);
  EXPECT_LT(10 * phases[0].seconds, 2 * phases[1].seconds) << "links within a host are faster";
}

TEST(ExchangePhases, TakeTheTimeOfTheExchange) {
  for (const std::string exchange : {"allreduce", "hierarchical"})
    for (const std::string codec : {"fp16", "topk:0.01"}) {
      const ComparedPolicies found = compared(exchange, codec);
      double seconds = 0;
      for (const ExchangePhase& phase : found.phases) seconds += phase.seconds;
      const ExchangeLawOf law = law_of(
          {.codec = codec, .exchange = exchange},
          {.model = "one layer", .layers = {{.name = "layer", .bytes = kExchanged, .backward_s = 1e-3}}}, hosts());
      EXPECT_NEAR(seconds, exchange_cost(hosts(), 8, kExchanged, law(8, 2)).table.back().second, 1e-9)
          << exchange << ' ' << codec;
    }
}

TEST(ExchangePhases, OfAPlainAllReduceAreNone) { EXPECT_TRUE(compared("allreduce", "none").phases.empty()); }

}  // namespace
}  // namespace syncopate
