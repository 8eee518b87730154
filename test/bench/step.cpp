// Rows of training steps: every rank counts in the share of the ceiling, and bounds follow from bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/step/pytorch.hpp"
#include "bench/step/rows.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::tools::bench {
namespace {

constexpr int kWarmup = 1;

std::string step_line(int step, double seconds) {
  return fmt::format(
      R"({{"event":"step","step":{},"step_s":{},"forward_s":1.0,"backward_s":2.0,"wait_s":0.5,"optimizer_s":0.25,)"
      R"("wire_bytes":2000000}})",
      step, seconds);
}

std::string end_line(double median_s) {
  return fmt::format(R"({{"event":"end","step_seconds":{{"median":{}}}}})", median_s);
}

/// Two rounds of two ranks, of which the second is slower; in the second round both take twice as long.
Steps steps_of(double first, double second) {
  Steps steps(kWarmup);
  for (const double factor : {1.0, 2.0}) {
    steps.begin_round();
    steps.take(R"({"event":"begin","gradient_bytes":1000000})", 0);
    steps.take(step_line(1, 100), 0);
    steps.take(step_line(2, factor * first), 0);
    steps.take("not a row", 0);
    steps.take(step_line(2, 1000), 1);
    steps.take(end_line(factor * first), 0);
    steps.take(end_line(factor * second), 1);
  }
  return steps;
}

TEST(Steps, AreThoseOfRankZeroAfterTheWarmUp) {
  const Steps steps = steps_of(4, 8);
  EXPECT_EQ(steps.step, (std::vector<double>{4, 8}));
  EXPECT_EQ(steps.wire_bytes, 2'000'000U);
  EXPECT_EQ(steps.gradient_bytes, 1'000'000U);
}

TEST(Steps, CountEveryRankInTheRate) {
  const Steps steps = steps_of(4, 8);
  EXPECT_DOUBLE_EQ(steps.steps_per_second(), (3.0 / 8 + 3.0 / 16) / 2) << "median of two rounds, each a sum over ranks";
  EXPECT_EQ(steps.even_steps(2), (std::vector<double>{16.0 / 3, 32.0 / 3}));
}

TEST(StepRows, ShareIsThatOfAllRanksTogether) {
  const Steps ceiling = steps_of(4, 8), coded = steps_of(8, 8);
  const nlohmann::json row = row_of({.codec = "fp16"}, coded, ceiling, {.ranks = 2, .bits_per_s = 0});
  EXPECT_DOUBLE_EQ(row.at("share_of_ceiling"), (2.0 / 8) / (3.0 / 8)) << "by rank 0 alone it would be 1/2";
  EXPECT_EQ(row.at("ceiling_seconds").at("min"), 16.0 / 3);
  EXPECT_EQ(row.at("contender"), "syncopate");
  EXPECT_EQ(row.at("policy"), "fusion");
  EXPECT_EQ(row.at("codec"), "fp16");
  EXPECT_EQ(row.at("exchange"), "allreduce");
  EXPECT_EQ(row.at("wire_bytes_per_step"), 2'000'000);
  EXPECT_TRUE(row.at("over_bound").is_null()) << "no rate";
  EXPECT_TRUE(row.at("predicted_s").is_null());
  EXPECT_EQ(row_of({.exchange = "none"}, ceiling, ceiling, {.ranks = 2}).at("share_of_ceiling"), 1);
}

TEST(StepBound, OfDenseGradientsIsTheRingsAndOfCodedOnesThatOfTheirBytes) {
  const Steps steps = steps_of(4, 8);
  const StepNetwork network{.ranks = 2, .bits_per_s = 1e6};
  const auto dense = bound_of({}, steps, steps, network);
  ASSERT_TRUE(dense);
  EXPECT_NEAR(dense->wire_s, 8 * 1.047, 1e-9) << "2 (N-1)/N of 1 MB at 1 Mbit/s";
  EXPECT_NEAR(dense->seconds(), 1 + 8 * 1.047 + 0.25, 1e-9);
  EXPECT_NEAR(bound_of({.codec = "topk"}, steps, steps, network)->wire_s, 16 * 1.047, 1e-9);
  const StepNetwork shared{.ranks = 2, .ranks_per_host = 2, .bits_per_s = 1e6};
  EXPECT_FALSE(bound_of({.codec = "topk"}, steps, steps, shared)) << "some of the bytes stayed on the host";
  EXPECT_EQ(bound_of({.exchange = "none"}, steps, steps, network)->seconds(), 6) << "the median step alone";
  EXPECT_FALSE(bound_of({.exchange = "reduce_broadcast"}, steps, steps, network)) << "it hides behind the next forward";
  EXPECT_FALSE(bound_of(pytorch_variants({"syncopate-sharded"}, {"none"}).front(), steps, steps, network));
}

TEST(StepBound, OfCodedGradientsWhoseBytesNobodySaidIsNotKnown) {
  Steps steps(0);
  steps.begin_round();
  steps.take(R"({"event":"step","step":1,"step_s":4.0,"forward_s":1.0,"backward_s":2.5,"optimizer_s":0.5})", 0);
  steps.take(R"({"event":"end","step_seconds":{"median":4.0},"state_bytes":1000})", 0);
  const StepVariant coded{.policy = "", .codec = "fp16", .contender = "ddp-gloo-fp16"};
  EXPECT_FALSE(bound_of(coded, steps, steps, {.ranks = 2, .bits_per_s = 1e6}));
  const nlohmann::json row = row_of(coded, steps, steps, {.ranks = 2});
  EXPECT_EQ(row.at("contender"), "ddp-gloo-fp16");
  for (const char* unknown : {"policy", "wait_seconds", "wire_bytes_per_step"})
    EXPECT_TRUE(row.at(unknown).is_null()) << unknown;
  EXPECT_EQ(row.at("state_bytes"), 1000);
}

TEST(PytorchContenders, AreCodedAsTheirHooksAreAndOursByEveryCodec) {
  const auto texts = [](const std::vector<std::string>& contenders) {
    std::vector<std::string> found;
    for (const StepVariant& variant : pytorch_variants(contenders, {"none", "topk:0.01"})) {
      EXPECT_FALSE(variant.is_own() || variant.is_ceiling());
      found.push_back(variant.text());
    }
    return found;
  };
  EXPECT_EQ(texts({}), std::vector<std::string>{});
  EXPECT_EQ(texts({"ddp-gloo", "ddp-gloo-powersgd", "ddp-syncopate-hook"}),
            (std::vector<std::string>{"ddp-gloo", "ddp-gloo-powersgd low_rank:4", "ddp-syncopate-hook",
                                      "ddp-syncopate-hook topk:0.01"}));
  test::expect_thrown<Misuse>([] { return pytorch_variants({"ddp-nccl"}, {"none"}); }, {"allowed: ddp-gloo, "});
  EXPECT_EQ(texts({"syncopate-ddp"}), (std::vector<std::string>{"syncopate-ddp", "syncopate-ddp topk:0.01"}));
  EXPECT_EQ(texts({"ddp-gloo:4"}), std::vector<std::string>{"ddp-gloo:4"});
  EXPECT_EQ(texts({"zero-gloo:4", "syncopate-sharded"}),
            (std::vector<std::string>{"zero-gloo:4", "syncopate-sharded"}));
  for (const char* wrong : {"ddp-gloo:", "ddp-gloo:0", "ddp-gloo:x", "ddp-gloo-powersgd:4", "syncopate-sharded:4"})
    EXPECT_THROW((void)pytorch_variants({wrong}, {"none"}), Misuse) << wrong;
}

TEST(PytorchContenders, AreTrainedByAFileThatAVariableNames) {
  ::setenv("SYNCOPATE_CONTENDER", "/proc/self/exe", 1);
  EXPECT_EQ(pytorch_program({.contender = "ddp-gloo"}, "meeting", {}).at(1), "/proc/self/exe");
  ::setenv("SYNCOPATE_CONTENDER", "/proc/self/nothing.py", 1);
  test::expect_thrown<Misuse>(contender_program, {"there is no file /proc/self/nothing.py; start it in"});
  ::unsetenv("SYNCOPATE_CONTENDER");
}

}  // namespace
}  // namespace syncopate::tools::bench
