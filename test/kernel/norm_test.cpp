// squared_norm and scale against their stated order and rounding, on every instruction set, to the bit.
#include "kernel/norm.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/half.hpp"
#include "elements.hpp"
#include "syncopate/error.hpp"

namespace syncopate::kernel {
namespace {

using testing::Guarded;
using Words = std::vector<std::byte>;

double value(DType dtype, const Words& words, std::size_t i) {
  if (dtype == DType::f64) return testing::element<double>(words.data(), i);
  if (dtype == DType::f32) return testing::element<float>(words.data(), i);
  const auto word = testing::element<std::uint16_t>(words.data(), i);
  return dtype == DType::f16 ? base::from_f16(word) : base::from_bf16(word);
}

/// Elements without infinities, NaNs (which would hide all other errors), and values whose squares overflow.
Words finite_elements(DType dtype, std::size_t count, std::uint64_t seed) {
  Words words = testing::any_elements(dtype, count, seed);
  const std::size_t size = size_of(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const double x = value(dtype, words, i);
    if (!std::isfinite(x * x)) std::memset(words.data() + i * size, 0x11, size);
  }
  return words;
}

/// The order that norm.hpp states. `volatile` keeps the compiler from fusing the product into the sum.
double stated_norm(DType dtype, const Words& words, std::size_t count) {
  double sums[32] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const volatile double square = value(dtype, words, i) * value(dtype, words, i);
    sums[i % 32] += square;
  }
  for (const int width : {16, 8, 4, 2, 1})
    for (int j = 0; j < width; ++j) sums[j] += sums[j + width];
  return sums[0];
}

TEST(Norm, IsTheStatedSumOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const DType dtype : testing::kFloatTypes)
      for (const std::size_t count : testing::kCounts) {
        const Words words = finite_elements(dtype, count, count + 1);
        Guarded in(words, count % 13);
        ASSERT_EQ(squared_norm(dtype, in.data(), count), stated_norm(dtype, words, count))
            << name_of(dtype) << " x " << count << " on " << target;
      }
  });
}

TEST(Norm, HandValues) {
  const std::vector<float> ones(100000, 1.0f);
  EXPECT_EQ(squared_norm(DType::f32, reinterpret_cast<const std::byte*>(ones.data()), ones.size()), 100000.0);
  const float triangle[] = {3, -4};
  EXPECT_EQ(squared_norm(DType::f32, reinterpret_cast<const std::byte*>(triangle), 2), 25.0);
  EXPECT_EQ(squared_norm(DType::f32, nullptr, 0), 0.0);
  const float huge[] = {1e38f, 1e38f};
  EXPECT_NEAR(squared_norm(DType::f32, reinterpret_cast<const std::byte*>(huge), 2), 2e76, 1e70);
}

TEST(Norm, NanAndInfinityShowWhereverTheyStand) {
  testing::on_every_target([](const std::string& target) {
    std::vector<float> values(4099, 1.0f);
    const auto norm = [&] { return squared_norm(DType::f32, reinterpret_cast<const std::byte*>(values.data()), 4099); };
    for (const std::size_t at : {std::size_t{0}, std::size_t{2047}, std::size_t{4098}}) {
      values[at] = -std::numeric_limits<float>::infinity();
      EXPECT_EQ(norm(), std::numeric_limits<double>::infinity()) << target;
      values[at] = -std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(std::bit_cast<std::uint64_t>(norm()), 0x7ff8000000000000u) << target;
      values[at] = 1;
    }
  });
}

TEST(Scale, RoundsOncePerElementOnEveryInstructionSet) {
  const auto expected = [](DType dtype, const Words& words, std::size_t i, double factor) -> std::uint64_t {
    const double x = value(dtype, words, i);
    const bool nan = std::isnan(x * factor);
    if (dtype == DType::f64) return nan ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(x * factor);
    const float product = static_cast<float>(x) * static_cast<float>(factor);
    if (dtype == DType::f32) return nan ? 0x7fc00000u : std::bit_cast<std::uint32_t>(product);
    if (dtype == DType::f16) return nan ? 0x7e00 : base::to_f16(product);
    return nan ? 0x7fc0 : base::to_bf16(product);
  };
  testing::on_every_target([&](const std::string& target) {
    for (const DType dtype : testing::kFloatTypes)
      for (const std::size_t count : testing::kCounts)
        for (const double factor : {0.0, 0.1, -1.0, 3e-5}) {
          const Words words = testing::any_elements(dtype, count, count + 2);
          Guarded into(words, count % 7);
          scale(dtype, into.data(), count, factor);
          ASSERT_TRUE(into.guards_hold());
          for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(testing::word(dtype, into.data(), i), expected(dtype, words, i, factor))
                << name_of(dtype) << " " << value(dtype, words, i) << " * " << factor << " on " << target;
        }
  });
}

TEST(Norm, IntegersAreMisuse) {
  std::byte bytes[8] = {};
  EXPECT_THROW((void)squared_norm(DType::i32, bytes, 1), Misuse);
  EXPECT_THROW(scale(DType::i64, bytes, 1, 2.0), Misuse);
}

}  // namespace
}  // namespace syncopate::kernel
