// The scalar half-precision conversions against hand values, and against the definition over all words.
#include "base/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace syncopate::base {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Half, F16HasTheValuesOfItsDefinition) {
  for (std::uint32_t word = 0; word < 0x10000; ++word) {
    const int exponent = static_cast<int>(word >> 10 & 31), fraction = static_cast<int>(word & 0x3ff);
    const float value = from_f16(static_cast<std::uint16_t>(word));
    ASSERT_EQ(std::signbit(value), (word & 0x8000) != 0) << word;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(value), fraction != 0) << word;
      ASSERT_EQ(std::isinf(value), fraction == 0) << word;
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(std::fabs(value), magnitude) << word;
  }
}

TEST(Half, F16RoundsToTheNearestEvenWord) {
  // Between neighbours: the words themselves, the midpoint, and the f32 just below and above it.
  for (std::uint32_t word = 0; word < 0x7bff; ++word) {
    const auto low = static_cast<std::uint16_t>(word), high = static_cast<std::uint16_t>(word + 1);
    const float middle = (from_f16(low) + from_f16(high)) / 2;
    ASSERT_EQ(to_f16(from_f16(low)), low);
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)), low);
    ASSERT_EQ(to_f16(middle), word % 2 == 0 ? low : high);
    ASSERT_EQ(to_f16(std::nextafter(middle, kInfinity)), high);
    ASSERT_EQ(to_f16(-middle), 0x8000 | (word % 2 == 0 ? low : high));
  }
}

TEST(Half, F16HandValues) {
  EXPECT_EQ(to_f16(1.0f), 0x3c00);
  EXPECT_EQ(to_f16(-2.0f), 0xc000);
  EXPECT_EQ(to_f16(0.1f), 0x2e66);
  EXPECT_EQ(to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(to_f16(65519.99f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(1e30f), 0x7c00);
  EXPECT_EQ(to_f16(-kInfinity), 0xfc00);
  EXPECT_EQ(to_f16(-0.0f), 0x8000);
  EXPECT_EQ(to_f16(0x1p-24f), 0x0001);
  EXPECT_EQ(to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(to_f16(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(to_f16(0x1p-149f), 0x0000);
  EXPECT_EQ(to_f16(0x1.ff8p-15f), 0x03ff);
  EXPECT_EQ(to_f16(0x1.ffep-15f), 0x0400);  // rounds up from the subnormals
  EXPECT_EQ(to_f16(std::bit_cast<float>(0xffc02000u)), 0xfe01);
  EXPECT_EQ(to_f16(std::bit_cast<float>(0x7f800001u)), 0x7e00);
}

TEST(Half, Bf16IsTheUpperHalfRoundedToEven) {
  for (std::uint32_t word = 0; word < 0x7f80; ++word) {
    ASSERT_EQ(to_bf16(std::bit_cast<float>(word << 16)), word);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(word << 16 | 0x7fff)), word);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(word << 16 | 0x8000)), word + word % 2);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(word << 16 | 0x8001)), word + 1);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(from_bf16(static_cast<std::uint16_t>(word))), word << 16);
  }
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(3.14159265f), 0x4049);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bf16(-kInfinity), 0xff80);
}

TEST(Half, NanStaysNan) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(from_f16(to_f16(nan))));
    EXPECT_TRUE(std::isnan(from_bf16(to_bf16(nan))));
    EXPECT_EQ(to_f16(nan) >> 15, bits >> 31);
    EXPECT_EQ(to_bf16(nan) >> 15, bits >> 31);
  }
}

static_assert(to_f16(from_f16(0x1234)) == 0x1234 && to_bf16(from_bf16(0x4321)) == 0x4321, "usable in constants");

}  // namespace
}  // namespace syncopate::base
