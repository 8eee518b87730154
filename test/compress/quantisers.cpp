// Quantisers: a group decodes to the documented levels or means, for every kind of number.
#include <limits>

#include "compress/quantised/levels.hpp"
#include "compress/quantising.hpp"
#include "kernel/quantize.hpp"

namespace syncopate::compress {
namespace {

using namespace test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Qsgd, CountsInPartsOfTheLargest) {
  Coders coders(settings_of("qsgd:4"), {{512, 1, 5}}, 1);
  coders.fill([](auto, auto, auto i) { return i == 3 ? 3.0F : i == 400 ? -4.0F : 0.0F; });
  coders.begin();
  float unit = 0;
  std::memcpy(&unit, coders[0].round->payload.bytes().data(), sizeof unit);
  EXPECT_FLOAT_EQ(unit, 4 / 7.0F);
}

// Clipping at 2.5 deviations: a single outlier always decodes to the limit.
TEST(TernGrad, ClipsAtTwoAndAHalfDeviations) {
  Coders coders(settings_of("terngrad"), {{2560, 1, 5}}, 1);
  coders.fill([](auto, auto, auto i) { return i == 77 ? -1000.0F : (i % 2 == 0 ? 1.0F : -1.0F); });
  const double sigma = std::sqrt((1e6 + 2559) / 2560);
  coders.begin();
  float unit = 0;
  std::memcpy(&unit, coders[0].round->payload.bytes().data(), sizeof unit);
  EXPECT_NEAR(unit, 2.5 * sigma, 1e-4);
  coders.answer_all();
  coders.answer_all();
  EXPECT_NEAR(coders.at(0).values[77], -unit, 1e-4) << "the average is not clipped again";
}

TEST(OneBit, SendsTheMeansOfBothSigns) {
  Coders coders(settings_of("onebit"), {{5, 1, 1}}, 1);
  coders.at(0).values = {1, -3, 2, -0.0F, 6};
  coders.step();
  EXPECT_EQ(coders.at(0).values, (Values{3, -1.5F, 3, -1.5F, 3}));
}

/// Each element replaced by its group's mean of its sign, in f64.
std::vector<double> sign_means(const std::vector<double>& values) {
  std::vector<double> means(values.size());
  for (std::size_t begin = 0; begin < values.size(); begin += 512) {
    const std::size_t end = std::min(begin + 512, values.size());
    double sums[2] = {}, counts[2] = {};
    for (std::size_t i = begin; i < end; ++i) sums[std::signbit(values[i])] += values[i];
    for (std::size_t i = begin; i < end; ++i) ++counts[std::signbit(values[i])];
    for (std::size_t i = begin; i < end; ++i)
      means[i] = sums[std::signbit(values[i])] / counts[std::signbit(values[i])];
  }
  return means;
}

TEST(OneBit, CompressesPacketsAndTheirAverages) {
  constexpr std::size_t kCount = 5000, kRanks = 3;
  Coders coders(settings_of("onebit"), {{kCount, 1, 7}}, kRanks);
  coders.fill([](auto rank, auto, auto i) { return normal(rank, i) + 0.1F; });
  std::vector<double> average(kCount);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const Values& values = coders.at(rank).values;
    const std::vector<double> sent = sign_means({values.begin(), values.end()});
    for (std::size_t i = 0; i < kCount; ++i) average[i] += sent[i] / kRanks;
  }
  const std::vector<double> expected = sign_means(average);
  coders.step();
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(coders.at(1).values[i], expected[i], 1e-6) << i;
}

TEST(Int8, RoundsToTheNearestLevelOfTheLargestMagnitude) {
  Coders coders(with_residual("int8"), {{3000, 1, 1}}, 1);
  coders.fill([](auto, auto, auto i) { return normal(1, i); });
  const Values exact = coders.at(0).values;
  coders.begin();
  const Values residual = floats_of(coders.at(0).next);  // the owner's 3000, then the rank's
  for (std::size_t i = 0; i < 3000; ++i) {
    float largest = 0;
    for (std::size_t j = i / 512 * 512; j < std::min<std::size_t>(i / 512 * 512 + 512, 3000); ++j)
      largest = std::max(largest, std::fabs(exact[j]));
    ASSERT_LE(std::fabs(residual[3000 + i]), largest / 254 * 1.00001) << i;
  }
}

TEST(Quantised, BringsSpecialGroupsAsStated) {
  for (const std::string& codec : kQuantising) {
    Coders coders(settings_of(codec), {{512, 1, 1}, {512, 1, 2}, {512, 1, 3}, {1, 1, 4}}, 2);
    coders.fill([](auto, auto tensor, auto i) {
      const float zero = i % 2 == 0 ? 0.0F : -0.0F;
      return tensor == 0 ? zero : tensor == 1 ? -3.0F : tensor == 2 ? 1e-42F : 0.7F;
    });
    coders.step();
    for (std::size_t i = 0; i < 512; ++i) {
      ASSERT_EQ(coders.at(1, 0).values[i], 0) << codec << ": zeros";
      if (codec.starts_with("qsgd")) continue;  // a level of the norm
      ASSERT_NEAR(coders.at(1, 1).values[i], -3, 1e-6) << codec << ": all equal";
      ASSERT_NEAR(coders.at(1, 2).values[i], 0, 1e-41) << codec << ": subnormal";
    }
    EXPECT_NEAR(coders.at(1, 3).values[0], 0.7, 1e-6) << codec << ": alone";
  }
}

double largest(std::span<const float> group, unsigned highest) {
  return double{kernel::peak(group.data(), group.size())} / highest;
}

// `decode` accepts every encoded group, and its largest elements, which are whole levels, are exact.
TEST(Levels, AreValidWhateverIsDrawn) {
  for (const unsigned bits : {0U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
    const auto highest = static_cast<std::uint8_t>(bits == 0 ? 1 : (1U << (bits - 1)) - 1);
    const auto quantiser = quantised::level_quantiser({.highest = highest, .bits = bits, .unit = largest});
    for (const std::uint32_t draw : kExtremeDraws)
      for (std::uint32_t index = 0; index < 70; ++index) {
        Values group(70), decoded(70);
        for (std::size_t i = 0; i < group.size(); ++i) group[i] = static_cast<float>(i % 3 == 0 ? -highest : highest);
        std::vector<std::byte> bytes(quantiser->bytes(group.size()));
        quantiser->encode(group, word_that_draws(draw, index), bytes.data());
        ASSERT_NO_THROW(quantiser->decode(bytes.data(), decoded)) << bits << " bits, draw " << draw;
        ASSERT_EQ(decoded, group) << bits << " bits, draw " << draw;
      }
  }
}

// These keys make rank 0 draw the greatest and the least dither for its first element in step 0. The largest magnitude
// makes every unit 1 or 16.
TEST(Quantised, BringsElementsOfTheLargestMagnitudeWhateverIsDrawn) {
  const std::vector<std::pair<std::string, float>> largest{{"terngrad", 14},
                                                           {"qsgd:2", 1},
                                                           {"qsgd:3", 3},
                                                           {"qsgd:4", 7},
                                                           {"qsgd:5", 15},
                                                           {"qsgd:6", 31},
                                                           {"qsgd:7", 63},
                                                           {"qsgd:8", 127},
                                                           {"int8", 127},
                                                           {"onebit", 16},

                                                           {"sparse_quantised:1,4", 7},
                                                           {"sparse_quantised:1,8", 127}};
  for (const std::uint64_t key : {26907199, 26892892}) {
    const std::uint32_t draw = kernel::drawn(base::CounterRandom{key, 0, 0}.bits(0), 0) >> 8;
    ASSERT_EQ(draw, key == 26907199 ? 0x7fffffU : 0x800000U);
    for (const auto& [codec, magnitude] : largest)
      for (const float value : {magnitude, -magnitude}) {
        const bool is_alone = codec.starts_with("qsgd");
        Values sent(512, is_alone ? 0.0F : value);
        sent[0] = value;
        Coders coders(settings_of(codec), {{512, 1, key}}, 1);
        coders.at(0).values = sent;
        ASSERT_NO_THROW(coders.step()) << codec << ", draw " << draw;
        ASSERT_EQ(coders.at(0).values, sent) << codec << ", draw " << draw;
      }
  }
}

TEST(Quantised, LargestNumbersStayFinite) {
  for (const std::string codec :
       {"qsgd:2", "qsgd:3", "qsgd:4", "qsgd:5", "qsgd:6", "qsgd:7", "qsgd:8", "terngrad", "int8", "onebit",
        "sparse_quantised:1,2", "sparse_quantised:1,6", "sparse_quantised:1,8"})
    for (const float large : {3e38F, std::numeric_limits<float>::max()})
      for (const std::size_t many : {1, 512}) {
        Coders coders(settings_of(codec), {{512, 1, 1}}, 1);
        coders.fill([&](auto, auto, auto i) { return i >= many ? 0.0F : i % 2 == 0 ? large : -large; });
        coders.step();
        for (const float value : coders.at(0).values) ASSERT_TRUE(std::isfinite(value)) << codec << ", " << large;
      }
}

TEST(Quantised, WhatIsNotFiniteOnOneRankIsNotFiniteOnAll) {
  for (const std::string& codec : kQuantising)
    for (const float bad : {kNan, kInfinity, -kInfinity})
      for (const std::size_t at : {0, 511, 512, 5999}) {
        Coders coders(settings_of(codec), {{6000, 1, 1}}, 3);
        coders.fill([](auto rank, auto, auto i) { return normal(rank, i); });
        coders.at(1).values[at] = bad;
        coders.step();
        for (std::size_t rank = 0; rank < 3; ++rank)
          ASSERT_FALSE(std::isfinite(coders.at(rank).values[at])) << codec << ", " << bad << " at " << at;
        ASSERT_TRUE(std::isfinite(coders.at(0).values[3000])) << codec << ": another group";
      }
}

}  // namespace
}  // namespace syncopate::compress
