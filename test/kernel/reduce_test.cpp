// combine, reduce and finish against one element at a time, on every instruction set, to the bit.
#include "kernel/reduce.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/half.hpp"
#include "elements.hpp"
#include "syncopate/error.hpp"

namespace syncopate::kernel {
namespace {

using testing::Guarded;
using Words = std::vector<std::byte>;

template <class T>
T one_nan(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

template <class T>
T float_result(const Reduction& r, T a, T b) {
  if (r.op == ReduceOp::sum || r.op == ReduceOp::average) return one_nan(r.divisor == 1 ? a + b : (a + b) / r.divisor);
  if (r.op == ReduceOp::product) return one_nan(a * b);
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  const bool a_is_less = a < b || (a == b && std::signbit(a));
  return (r.op == ReduceOp::min) == a_is_less ? a : b;
}

template <class T>
T integer_result(const Reduction& r, T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (r.op == ReduceOp::min) return a < b ? a : b;
  if (r.op == ReduceOp::max) return a < b ? b : a;
  if (r.op == ReduceOp::product) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  return static_cast<T>(static_cast<T>(static_cast<U>(a) + static_cast<U>(b)) / r.divisor);
}

/// The law of reduce.hpp for one pair of elements, given and returned as bits.
std::uint64_t expected(const Reduction& r, std::uint64_t a, std::uint64_t b) {
  using U32 = std::uint32_t;
  const auto a16 = static_cast<std::uint16_t>(a), b16 = static_cast<std::uint16_t>(b);
  const auto a32 = static_cast<U32>(a), b32 = static_cast<U32>(b);
  switch (r.dtype) {
    case DType::f32:
      return std::bit_cast<U32>(float_result(r, std::bit_cast<float>(a32), std::bit_cast<float>(b32)));
    case DType::f64:
      return std::bit_cast<std::uint64_t>(float_result(r, std::bit_cast<double>(a), std::bit_cast<double>(b)));
    case DType::f16:
      return base::to_f16(float_result(r, base::from_f16(a16), base::from_f16(b16)));
    case DType::bf16:
      return base::to_bf16(float_result(r, base::from_bf16(a16), base::from_bf16(b16)));
    case DType::i32:
      return static_cast<U32>(integer_result(r, static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
    case DType::i64:
      return static_cast<std::uint64_t>(integer_result(r, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
    case DType::u8:
      return static_cast<std::uint8_t>(integer_result(r, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b)));
  }
  return 0;
}

std::vector<Reduction> all_reductions() {
  std::vector<Reduction> all;
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kReduceOps) all.push_back({dtype, op, 1});
    for (const int divisor : {2, 3, 7, 64, 1 << 24}) all.push_back({dtype, ReduceOp::average, divisor});
  }
  return all;
}

std::string describe(const Reduction& r) {
  return std::string(name_of(r.dtype)) + " " + std::string(name_of(r.op)) + " / " + std::to_string(r.divisor);
}

void expect_law(const Reduction& r, const Words& a, const Words& b, const Words& result) {
  for (std::size_t i = 0; i < a.size() / size_of(r.dtype); ++i) {
    const std::uint64_t x = testing::word(r.dtype, a.data(), i), y = testing::word(r.dtype, b.data(), i);
    ASSERT_EQ(testing::word(r.dtype, result.data(), i), expected(r, x, y))
        << describe(r) << std::hex << " of 0x" << x << " and 0x" << y << ", element " << std::dec << i;
  }
}

TEST(Reduce, EveryElementObeysTheLawOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const Reduction& r : all_reductions())
      for (const std::size_t count : testing::kCounts) {
        const Words a = testing::any_elements(r.dtype, count, count), b = testing::any_elements(r.dtype, count, ~count);
        Guarded into(a.size(), 0);
        combine(r, into.data(), {a.data(), b.data()}, count);
        ASSERT_TRUE(into.guards_hold()) << describe(r) << " x " << count;
        ASSERT_NO_FATAL_FAILURE(expect_law(r, a, b, into.content()));
      }
  });
}

TEST(Reduce, AnyAddressWillDo) {
  testing::on_every_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const Reduction& r : all_reductions())
      for (const std::size_t offset : testing::kOffsets) {
        const std::size_t count = 1000 + offset;
        const Words a = testing::any_elements(r.dtype, count, 3), b = testing::any_elements(r.dtype, count, 4);
        Guarded into(a, offset), from(b, (offset * 5 + 3) % 32);
        reduce(r, into.data(), from.data(), count);
        ASSERT_TRUE(into.guards_hold() && from.guards_hold()) << describe(r) << " at " << offset;
        ASSERT_EQ(from.content(), b);
        ASSERT_NO_FATAL_FAILURE(expect_law(r, a, b, into.content()));
      }
  });
}

TEST(Reduce, TheOrderOfOperandsDoesNotMatter) {
  testing::on_every_target([](const std::string& target) {
    for (const Reduction& r : all_reductions()) {
      const std::size_t count = 5000;
      const Words a = testing::any_elements(r.dtype, count, 5), b = testing::any_elements(r.dtype, count, 6);
      Words ab(a.size()), ba(a.size());
      combine(r, ab.data(), {a.data(), b.data()}, count);
      combine(r, ba.data(), {b.data(), a.data()}, count);
      ASSERT_EQ(ab, ba) << describe(r) << " on " << target;
    }
  });
}

TEST(Reduce, TheResultMayTakeThePlaceOfEitherOperand) {
  for (const Reduction& r : all_reductions()) {
    const std::size_t count = 777;
    const Words a = testing::any_elements(r.dtype, count, 7), b = testing::any_elements(r.dtype, count, 8);
    Words apart(a.size()), first = a, second = b;
    combine(r, apart.data(), {a.data(), b.data()}, count);
    combine(r, first.data(), {first.data(), b.data()}, count);
    combine(r, second.data(), {a.data(), second.data()}, count);
    ASSERT_EQ(first, apart) << describe(r);
    ASSERT_EQ(second, apart) << describe(r);
  }
}

TEST(Reduce, FinishDividesWhatIsThere) {
  testing::on_every_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const Reduction& r : all_reductions())
      for (const std::size_t count : testing::kCounts) {
        if (r.divisor == 1) continue;
        const DType dtype = r.dtype;
        const Words a = testing::any_elements(dtype, count, 9);
        Guarded into(a, 4);
        finish(r, into.data(), count);
        ASSERT_TRUE(into.guards_hold());
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint64_t x = testing::word(dtype, a.data(), i);
          // The reference adds +0, which changes nothing but -0.
          const bool minus_zero = !is_integer(dtype) && x == std::uint64_t{1} << (8 * size_of(dtype) - 1);
          ASSERT_EQ(testing::word(dtype, into.data(), i), minus_zero ? x : expected(r, x, 0)) << name_of(dtype);
        }
      }
  });
}

TEST(Reduce, FinishWithoutADivisorChangesNothing) {
  for (const DType dtype : kDTypes) {
    const Words before = testing::any_elements(dtype, 100, 10);
    Words after = before;
    finish({dtype, ReduceOp::average, 1}, after.data(), 100);
    EXPECT_EQ(after, before);
  }
}

TEST(Reduce, HandValues) {
  const auto f32 = [](Reduction r, float a, float b) {
    r.dtype = DType::f32;
    float into = a;
    reduce(r, reinterpret_cast<std::byte*>(&into), reinterpret_cast<const std::byte*>(&b), 1);
    return into;
  };
  const auto f16 = [](int divisor, std::uint16_t a, std::uint16_t b) {
    reduce({DType::f16, ReduceOp::average, divisor}, reinterpret_cast<std::byte*>(&a),
           reinterpret_cast<const std::byte*>(&b), 1);
    return a;
  };
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(f32({.op = ReduceOp::sum}, 1.5f, 2.25f), 3.75f);
  EXPECT_EQ(f32({.op = ReduceOp::average, .divisor = 3}, 1.0f, 1.0f), 2.0f / 3.0f);
  EXPECT_EQ(f32({.op = ReduceOp::average, .divisor = 1 << 24}, 0x1p-126f, 0x1p-126f), 0x1p-149f);
  EXPECT_EQ(f32({.op = ReduceOp::min}, -1.0f, infinity), -1.0f);
  EXPECT_TRUE(std::signbit(f32({.op = ReduceOp::min}, 0.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(f32({.op = ReduceOp::max}, -0.0f, 0.0f)));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(f32({.op = ReduceOp::sum}, infinity, -infinity)), 0x7fc00000u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(f32({.op = ReduceOp::max}, -nan, infinity)), 0x7fc00000u);
  EXPECT_EQ(f32({.op = ReduceOp::product}, 1.5f, -2.5f), -3.75f);
  EXPECT_TRUE(std::signbit(f32({.op = ReduceOp::product}, 0.0f, -1.0f)));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(f32({.op = ReduceOp::product}, 0.0f, infinity)), 0x7fc00000u);
  EXPECT_EQ(f16(2, 0x7bff, 0x7bff), 0x7bff);  // the sum would overflow, the average does not
  EXPECT_EQ(f16(1, 0x7bff, 0x7bff), 0x7c00);
}

TEST(Reduce, IntegersWrapAndTruncate) {
  constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  std::int32_t into[] = {largest, -7, 7}, from[] = {1, 0, 0};
  reduce({DType::i32, ReduceOp::sum}, reinterpret_cast<std::byte*>(into), reinterpret_cast<std::byte*>(from), 3);
  EXPECT_EQ(into[0], std::numeric_limits<std::int32_t>::min());
  finish({DType::i32, ReduceOp::average, 2}, reinterpret_cast<std::byte*>(into), 3);
  EXPECT_EQ(into[1], -3);
  EXPECT_EQ(into[2], 3);
  std::byte byte{200};
  const std::byte other{100};
  reduce({DType::u8, ReduceOp::max}, &byte, &other, 1);
  EXPECT_EQ(byte, std::byte{200}) << "bytes have no sign";
  reduce({DType::u8, ReduceOp::average, 7}, &byte, &other, 1);
  EXPECT_EQ(byte, std::byte{(200 + 100 - 256) / 7});
  byte = std::byte{200};
  reduce({DType::u8, ReduceOp::product}, &byte, &other, 1);
  EXPECT_EQ(byte, std::byte{200 * 100 % 256});
}

TEST(Reduce, AForbiddenDivisorIsMisuse) {
  float x = 1;
  const auto with = [&](ReduceOp op, int divisor) {
    auto* bytes = reinterpret_cast<std::byte*>(&x);
    combine({DType::f32, op, divisor}, bytes, {bytes, bytes}, 1);
  };
  EXPECT_THROW(with(ReduceOp::average, 0), Misuse);
  EXPECT_THROW(with(ReduceOp::sum, -2), Misuse);
  EXPECT_THROW(with(ReduceOp::average, (1 << 24) + 1), Misuse);
  EXPECT_THROW(with(ReduceOp::max, 2), Misuse);
  EXPECT_THROW(with(ReduceOp::product, 2), Misuse);
  EXPECT_EQ(x, 1);
}

}  // namespace
}  // namespace syncopate::kernel
