// Quantising and its inverse match their documentation bit for bit on every instruction set; dither is uniform.
#include "kernel/quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "compress/quantising.hpp"
#include "elements.hpp"

namespace syncopate::kernel {
namespace {

using testing::Guarded;

/// Finite numbers of either sign, zeros among them.
std::vector<float> finite(std::size_t count, std::uint64_t seed) {
  const base::CounterRandom random{seed};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = random.below(7, 3 * i) == 0 ? (random.below(2, 3 * i + 2) == 0 ? 0.0F : -0.0F)
                                            : static_cast<float>(random.uniform(3 * i + 1) - 0.5) * 4;
  return values;
}

/// The field by the header's formula; `volatile` prevents fused operations.
std::uint8_t stated_field(const LevelScale& scale, float x, std::uint32_t index) {
  if (!(scale.unit > 0)) return scale.highest;
  const float highest = scale.highest, inverse = 1 / scale.unit;
  volatile float level = x * inverse;
  level = std::min(std::max(static_cast<float>(level), -highest), highest);
  const double fine = std::nearbyint(double{level} * 0x1p24) * 0x1p-24;
  const double whole = scale.is_dithered ? std::floor(fine + dither(scale.word, index)) : std::nearbyint(level);
  return static_cast<std::uint8_t>(static_cast<int>(whole) + scale.highest);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Quantize, GivesTheStatedLevelsOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts)
      for (const bool is_dithered : {false, true})
        for (const float unit : {0.25F, 0.3F, 0x1p-100F, 3e38F, 0.0F, kNan})
          for (const std::uint8_t highest : {1, 7, 127}) {
            const LevelScale scale{unit, highest, is_dithered, 0x0123456789abcdef * (count + 1)};
            const std::vector<float> values = finite(count, count);
            Guarded fields(std::vector<std::byte>(count), count % 5);
            quantize(scale, values.data(), count, reinterpret_cast<std::uint8_t*>(fields.data()));
            ASSERT_TRUE(fields.guards_hold());
            for (std::uint32_t i = 0; i < count; ++i)
              ASSERT_EQ(testing::element<std::uint8_t>(fields.data(), i), stated_field(scale, values[i], i))
                  << values[i] << " in units of " << unit << " on " << target;
          }
  });
}

// An f32 sum of level and dither rounds to the next level for the greatest draws.
TEST(Quantize, KeepsWholeLevelsWhateverIsDrawn) {
  testing::on_every_target([](const std::string& target) {
    for (const std::uint32_t draw : compress::test::kExtremeDraws)
      for (const std::uint8_t highest : {1, 3, 7, 15, 31, 63, 127})
        for (const float unit : {0x1p-100F, 0x1p-50F, 1.0F, 0x1p+4F, 0x1p+100F})
          for (std::uint32_t index = 0; index < 67; index += 3) {
            const LevelScale scale{unit, highest, true, compress::test::word_that_draws(draw, index)};
            ASSERT_EQ(drawn(scale.word, index), draw);
            for (const int level : {-int{highest}, -1, 0, 1, int{highest}}) {
              const std::vector<float> values(67, static_cast<float>(level) * unit);
              std::uint8_t fields[67];
              quantize(scale, values.data(), values.size(), fields);
              for (const std::uint8_t field : fields)
                ASSERT_EQ(field, level + highest)
                    << "highest " << int{highest} << ", draw " << draw << " on " << target;
            }
          }
  });
}

// All 2^24 draws are equally frequent, so the draw at which the level changes determines the expectation.
TEST(Quantize, RoundsUpForAsManyDrawsAsTheFractionHas) {
  testing::on_every_target([](const std::string& target) {
    for (const std::uint8_t highest : {1, 7, 127})
      for (const float x : {0.25F, 0.75F, 0x1p-24F, 1 - 0x1p-24F, -0.25F, -0x1p-24F, 0x1.8p-1F}) {
        const double down = std::floor(x);
        const auto turns = static_cast<std::uint32_t>((1 - (x - down)) * 0x1p24);  // the first draw that goes up
        for (const std::uint32_t step : {turns - 1, turns}) {
          if (step >= 1U << 24) continue;
          const LevelScale scale{1, highest, true, compress::test::word_that_draws((step ^ 0x800000U) << 8, 0)};
          std::uint8_t field = 0;
          quantize(scale, &x, 1, &field);
          ASSERT_EQ(field - highest, down + (step == turns ? 1 : 0)) << x << " on " << target;
        }
      }
  });
}

TEST(Dequantize, GivesTheStatedProductsOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts)
      for (const float unit : {0.3F, 0x1p-140F, 3e38F, 0.0F, -kNan}) {
        std::vector<std::uint8_t> fields(count);
        for (std::size_t i = 0; i < count; ++i) fields[i] = static_cast<std::uint8_t>(i % 255);
        Guarded out(std::vector<std::byte>(4 * count), count % 9);
        dequantize({.unit = unit, .highest = 127}, fields.data(), count, reinterpret_cast<float*>(out.data()));
        ASSERT_TRUE(out.guards_hold());
        for (std::size_t i = 0; i < count; ++i) {
          const float product = static_cast<float>(static_cast<int>(fields[i]) - 127) * unit;
          const std::uint32_t bits = std::isnan(unit) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(product);
          ASSERT_EQ(testing::element<std::uint32_t>(out.data(), i), bits) << unit << " on " << target;
        }
      }
  });
}

TEST(Signs, AreSplitAndChosenByTheSignBitOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts) {
      const auto elements = testing::any_elements(DType::f32, count, count);
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = testing::element<float>(elements.data(), i);
      Guarded fields(std::vector<std::byte>(count), count % 7), chosen(std::vector<std::byte>(4 * count), count % 3);
      auto* const bits = reinterpret_cast<std::uint8_t*>(fields.data());
      sign_fields(values.data(), count, bits);
      choose({1.5F, -2.5F}, bits, count, reinterpret_cast<float*>(chosen.data()));
      ASSERT_TRUE(fields.guards_hold() && chosen.guards_hold());
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(bits[i], std::signbit(values[i]) ? 1 : 0) << target;
        ASSERT_EQ(testing::element<float>(chosen.data(), i), std::signbit(values[i]) ? -2.5F : 1.5F) << target;
      }
    }
  });
}

TEST(SignSums, AreTheStatedSumsOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts) {
      std::vector<float> values = finite(count, count + 9);
      for (float& value : values) value *= 1e30F;
      double negative[16] = {}, positive[16] = {};
      for (std::size_t i = 0; i < count; ++i) (values[i] < 0 ? negative : positive)[i % 16] += values[i];
      for (const int width : {8, 4, 2, 1})
        for (int j = 0; j < width; ++j) {
          negative[j] += negative[j + width];
          positive[j] += positive[j + width];
        }
      const SignSums sums = sign_sums(values.data(), count);
      ASSERT_EQ(sums.negative, negative[0]) << count << " on " << target;
      ASSERT_EQ(sums.positive, positive[0]) << count << " on " << target;
    }
  });
}

TEST(Peak, IsTheGreatestMagnitudeAndShowsWhatIsNotFinite) {
  testing::on_every_target([](const std::string& target) {
    EXPECT_EQ(peak(nullptr, 0), 0.0F);
    for (const std::size_t count : {1, 3, 16, 31, 32, 33, 100}) {
      for (std::size_t at = 0; at < count; ++at) {
        std::vector<float> values(count, -1.0F);
        values[at] = -3.5F;
        ASSERT_EQ(peak(values.data(), count), 3.5F) << at << " of " << count << " on " << target;
        values[at] = -std::numeric_limits<float>::infinity();
        ASSERT_EQ(peak(values.data(), count), std::numeric_limits<float>::infinity()) << target;
        values[at] = -kNan;
        ASSERT_TRUE(std::isnan(peak(values.data(), count))) << target;
      }
    }
  });
}

TEST(ScaledSquares, AreTheStatedSumOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts)
      for (const float factor : {1.0F, 0.3F, 0x1p+90F}) {
        std::vector<float> values = finite(count, count + 3);
        for (float& value : values) value /= factor;
        float sums[32] = {};
        for (std::size_t i = 0; i < count; ++i) {
          volatile float x = values[i] * factor;  // no fused operations
          volatile float square = x * x;
          sums[i % 32] += square;
        }
        for (const int width : {16, 8, 4, 2, 1})
          for (int j = 0; j < width; ++j) sums[j] += sums[j + width];
        ASSERT_EQ(scaled_squares(values.data(), count, factor), sums[0]) << count << " on " << target;
      }
  });
}

// Bounds of six standard deviations: a million elements, groups of 512, words as in coders.
TEST(Dither, IsUniformAndItsGroupsAndNeighboursAreIndependent) {
  constexpr std::size_t kGroups = 2048, kElements = 512;
  const auto centred = [](std::uint64_t word, std::uint32_t index) { return double{dither(word, index)} - 0.5; };
  const base::CounterRandom words{7, 1, 0};
  std::vector<double> bins(64);
  double sum = 0, squares = 0, neighbours = 0, across = 0;
  for (std::size_t group = 0; group < kGroups; ++group)
    for (std::uint32_t i = 0; i < kElements; ++i) {
      const double x = centred(words.bits(group), i);
      ASSERT_TRUE(x >= -0.5 && x < 0.5);
      ++bins[static_cast<std::size_t>((x + 0.5) * 64)];
      sum += x;
      squares += x * x;
      neighbours += x * centred(words.bits(group), i + 1);
      across += x * centred(words.bits(group + 1), i);
    }
  constexpr double n = kGroups * kElements, deviation = 6;
  EXPECT_LT(std::fabs(sum), deviation * std::sqrt(n / 12));
  EXPECT_LT(std::fabs(squares - n / 12), deviation * std::sqrt(n / 180));
  EXPECT_LT(std::fabs(neighbours), deviation * std::sqrt(n) / 12);
  EXPECT_LT(std::fabs(across), deviation * std::sqrt(n) / 12);
  double chi = 0;
  for (const double bin : bins) chi += (bin - n / 64) * (bin - n / 64) / (n / 64);
  EXPECT_LT(chi, 63 + deviation * std::sqrt(2 * 63.0));
}

}  // namespace
}  // namespace syncopate::kernel
