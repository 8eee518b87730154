// A codec for each bucket: the cheapest by the law, against sums by hand; gradients of one bucket may differ in codec.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "ranks.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/synchronizer.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

constexpr double kAlpha = 1e-4, kBeta = 0.8e-9;  // 10 Gbit/s

Cluster cluster_of(double encode_s_per_byte) {
  Cluster cluster{.ranks = 2, .ranks_per_host = 1};
  cluster.inter = LinkCost{kAlpha, kBeta, 0};
  cluster.codecs = {{.codec = "topk:0.01", .encode_s_per_byte = encode_s_per_byte, .decode_s_per_byte = 0},
                    {.codec = "fp16", .encode_s_per_byte = 20e-9, .decode_s_per_byte = 0}};
  return cluster;
}

std::vector<CodecChoice> choices_of(const std::vector<Gradient>& model, const std::string& codec,
                                    const Cluster& cluster, const std::string& policy = "wfbp") {
  return choose_codecs(
      model, {.policy = policy, .coding = {.codec = codec}}, cluster,
      [&](const ExchangeLaw& law, std::uint64_t bytes) { return exchange_cost(cluster, cluster.ranks, bytes, law); });
}

const std::vector<Gradient> kTwo{{.name = "small", .elements = 5000}, {.name = "large", .elements = 1'000'000}};

// Two ranks: a dense all-reduce takes about 2 alpha + 4n beta, top-k a start-up more and 2 * 0.01 * 5/4 of the bytes.
TEST(CodecChoice, TakesTheCheapestForEachBucket) {
  const auto choices = choices_of(kTwo, "auto:topk:0.01+none", cluster_of(2e-10));
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].way, 1U) << "start-up outweighs 20 000 bytes: " << choices[0].predicted_s[0] << " and "
                                << choices[0].predicted_s[1];
  EXPECT_EQ(choices[1].way, 0U);
  EXPECT_EQ(choices[1].bytes, 4'000'000U);
  EXPECT_NEAR(choices[1].predicted_s[1], 2 * kAlpha + 4e6 * kBeta, 3e-4);
  EXPECT_NEAR(choices[1].predicted_s[0], 4e6 * (2e-10 + 0.01 * 1.25 * kBeta) + 2 * kAlpha, 3e-4);
}

TEST(CodecChoice, UsesNothingThatIsPredictedToLose) {
  for (const CodecChoice& choice : choices_of(kTwo, "auto:topk:0.01+fp16+none", cluster_of(1e-7)))
    EXPECT_EQ(choice.way, 2U) << "coding takes longer than the wire";
}

TEST(CodecChoice, PricesABucketByItsOwnGradients) {
  const std::vector<Gradient> model{{.name = "narrow", .elements = 1'000'000, .dtype = DType::f16},
                                    {.name = "wide", .elements = 1'000'000}};
  const auto both = choices_of(model, "auto:fp16+none", cluster_of(0));
  for (const std::size_t i : {0, 1})
    EXPECT_EQ(both.at(i).predicted_s, choices_of({model[i]}, "auto:fp16+none", cluster_of(0)).at(0).predicted_s)
        << model[i].name;
}

TEST(CodecChoice, RefusesWhatItCannotWeigh) {
  EXPECT_THROW(std::ignore = choices_of(kTwo, "auto:topk:0.02+none", cluster_of(0)), Misuse) << "its coding is unknown";
  EXPECT_THROW(std::ignore = choices_of(kTwo, "auto:topk:0.01+none", cluster_of(0), "mg_wfbp"), Misuse);
  EXPECT_THROW(std::ignore = choices_of(kTwo, "auto:", cluster_of(0)), Misuse);
  EXPECT_THROW(std::ignore = choices_of(kTwo, "auto:none+none", cluster_of(0)), Misuse);
  EXPECT_TRUE(auto_codecs("topk:0.01").empty());
  EXPECT_EQ(codec_ways("topk:0.01"), std::vector<std::string>{"topk:0.01"});
  EXPECT_EQ(codec_ways("auto:topk:0.01+none"), (std::vector<std::string>{"topk:0.01", "none"}));
}

TEST(CodecChoice, TakesACodecThatShortensAStepEnough) {
  const std::vector<std::string> ways{"none", "fp16", "topk:0.1"};
  EXPECT_EQ(quickest_way(ways, {12, 10.6, 10.9}, 0.05), 1U);
  EXPECT_EQ(quickest_way(ways, {12, 10.6, 10.9}, 0.12), 0U) << "it saves 11.7 %";
  EXPECT_EQ(quickest_way(ways, {12, 12, 11.9}), 2U) << "without noise every gain counts";
  EXPECT_EQ(quickest_way(ways, {12, 11, 11}), 1U) << "of equal ones the first";
  EXPECT_EQ(quickest_way({"fp16", "topk:0.1"}, {12, 11.9}, 0.05), 1U) << "without none the quickest counts";
  EXPECT_THROW(std::ignore = quickest_way(ways, {12, 11}), Misuse);
}

TEST(CodecChoice, ABucketWaitsForItsGradientsAndForTheBucketsBefore) {
  EXPECT_EQ(exchanges_end_s({1, 2, 9}, {4, 1, 2}), 11);
  EXPECT_EQ(exchanges_end_s({1, 2, 3}, {4, 1, 2}), 8);
  EXPECT_THROW(std::ignore = exchanges_end_s({1, 2}, {4}), Misuse);
}

const std::vector<Gradient> kMixed{{.name = "a", .elements = 6000},
                                   {.name = "b", .elements = 6000, .codec = "topk:0.01"},
                                   {.name = "c", .elements = 6000, .codec = "fp16"}};

void fill_and_wait(Synchronizer& synchronizer, int rank) {
  for (std::size_t i = kMixed.size(); i-- > 0;) {
    const auto values = test::floats_of(synchronizer.gradient(i));
    for (std::size_t j = 0; j < values.size(); ++j)
      values[j] = static_cast<float>(j + 1) / 7 + static_cast<float>(rank);
    synchronizer.ready(i);
  }
  synchronizer.wait();
}

TEST(GradientsOfOneBucket, MayEachHaveACodecOfTheirOwn) {
  for (const char* policy : {"single", "wfbp"})
    test::on_groups(2, [&](Group& group) {
      Synchronizer synchronizer(group, kMixed, {.policy = policy});
      fill_and_wait(synchronizer, group.rank());
      const auto a = test::floats_of(synchronizer.gradient(0)), b = test::floats_of(synchronizer.gradient(1)),
                 c = test::floats_of(synchronizer.gradient(2));
      EXPECT_FLOAT_EQ(a[0], 1.0F / 7 + 0.5F) << "as it is";
      EXPECT_EQ(std::ranges::count(b, 0.0F), 6000 - 60) << "the largest of 60";
      EXPECT_NEAR(c[5999], 6000.0F / 7 + 0.5F, 0.5F);
      EXPECT_NE(c[5999], 6000.0F / 7 + 0.5F) << "rounded to half precision";
      const SavedCodecState saved = synchronizer.save();
      Synchronizer again(group, kMixed, {.policy = policy});
      again.restore(saved);
      std::vector<Gradient> others = kMixed;
      others[1].codec = "";
      Synchronizer other(group, others, {.policy = policy});
      EXPECT_THROW(other.restore(saved), Misuse) << "another choice keeps other things";
    });
}

TEST(GradientsOfOneBucket, HaveTheSameCodecOnAllRanks) {
  auto groups = Group::threads(2);
  const auto failures = test::outcomes(2, [&](int rank) {
    std::vector<Gradient> model = kMixed;
    if (rank == 1) model[2].codec = "bf16";
    Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], model, {});
  });
  test::expect_thrown<Mismatch>(failures[1], {"codec bf16"});
}

}  // namespace
}  // namespace syncopate
