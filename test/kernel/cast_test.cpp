// cast against the scalar conversions, on every instruction set, to the bit.
#include "kernel/cast.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/half.hpp"
#include "elements.hpp"
#include "syncopate/error.hpp"

namespace syncopate::kernel {
namespace {

using testing::Guarded;
using Words = std::vector<std::byte>;

template <class T>
Words bytes_of(const std::vector<T>& values) {
  Words bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<std::uint16_t> all_words() {
  std::vector<std::uint16_t> words(0x10000);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  return words;
}

/// Every sign, exponent and upper fraction of f32, with the lower bits that decide how f16 and bf16 round.
std::vector<std::uint32_t> deciding_floats() {
  std::vector<std::uint32_t> floats;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const std::uint32_t lower :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      floats.push_back(upper << 16 | lower);
  return floats;
}

TEST(Cast, EveryHalfWidensToItsValue) {
  const Words in = bytes_of(all_words());
  testing::on_every_target([&](const std::string& target) {
    Words f16(0x10000 * 4), bf16(0x10000 * 4);
    cast({DType::f16, DType::f32}, in.data(), f16.data(), 0x10000);
    cast({DType::bf16, DType::f32}, in.data(), bf16.data(), 0x10000);
    for (std::size_t i = 0; i < 0x10000; ++i) {
      const auto word = static_cast<std::uint16_t>(i);
      ASSERT_EQ(testing::element<std::uint32_t>(f16.data(), i), std::bit_cast<std::uint32_t>(base::from_f16(word)))
          << target << " " << i;
      ASSERT_EQ(testing::element<std::uint32_t>(bf16.data(), i), std::bit_cast<std::uint32_t>(base::from_bf16(word)))
          << target << " " << i;
    }
  });
}

TEST(Cast, FloatsNarrowToTheNearestEvenHalf) {
  const auto floats = deciding_floats();
  const Words in = bytes_of(floats);
  testing::on_every_target([&](const std::string& target) {
    Words f16(floats.size() * 2), bf16(floats.size() * 2);
    cast({DType::f32, DType::f16}, in.data(), f16.data(), floats.size());
    cast({DType::f32, DType::bf16}, in.data(), bf16.data(), floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const auto value = std::bit_cast<float>(floats[i]);
      ASSERT_EQ(testing::element<std::uint16_t>(f16.data(), i), base::to_f16(value)) << target << std::hex << floats[i];
      ASSERT_EQ(testing::element<std::uint16_t>(bf16.data(), i), base::to_bf16(value))
          << target << std::hex << floats[i];
    }
  });
}

TEST(Cast, DoublesRoundOnceAndComeBack) {
  const std::size_t count = 4099;
  const Words doubles = testing::any_elements(DType::f64, count, 1),
              floats = testing::any_elements(DType::f32, count, 2);
  testing::on_every_target([&](const std::string& target) {
    Words narrow(count * 4), wide(count * 8);
    cast({DType::f64, DType::f32}, doubles.data(), narrow.data(), count);
    cast({DType::f32, DType::f64}, floats.data(), wide.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = testing::element<double>(doubles.data(), i);
      const auto y = testing::element<float>(floats.data(), i);
      if (std::isnan(x))
        ASSERT_TRUE(std::isnan(testing::element<float>(narrow.data(), i))) << target;
      else
        ASSERT_EQ(testing::element<std::uint32_t>(narrow.data(), i),
                  std::bit_cast<std::uint32_t>(static_cast<float>(x)))
            << target << " " << x;
      if (std::isnan(y))
        ASSERT_TRUE(std::isnan(testing::element<double>(wide.data(), i))) << target;
      else
        ASSERT_EQ(testing::element<double>(wide.data(), i), static_cast<double>(y)) << target;
    }
  });
}

TEST(Cast, ANanIsTheSameOnEveryInstructionSet) {
  for (const DType to : {DType::f16, DType::bf16, DType::f64})
    for (const bool narrowing : {false, true}) {
      const DType source = narrowing ? DType::f32 : to, target_type = narrowing ? to : DType::f32;
      const Words in = testing::any_elements(source, 1000, 3);
      Words first;
      testing::on_every_target([&](const std::string& target) {
        Words out(1000 * size_of(target_type));
        cast({source, target_type}, in.data(), out.data(), 1000);
        if (first.empty()) first = out;
        EXPECT_EQ(out, first) << target << " " << name_of(source) << " to " << name_of(target_type);
      });
    }
}

TEST(Cast, AnyCountAndAddressWillDo) {
  testing::on_every_target([](const std::string& target) {
    for (const DType half : {DType::f16, DType::bf16, DType::f64})
      for (const std::size_t count : testing::kCounts)
        for (const std::size_t offset : testing::kOffsets) {
          const Words content = testing::any_elements(half, count, 4);
          const std::size_t wide_bytes = 4 * count;  // of f32
          Words whole(wide_bytes), narrow(content.size());
          cast({half, DType::f32}, content.data(), whole.data(), count);
          cast({DType::f32, half}, whole.data(), narrow.data(), count);
          Guarded in(content, offset), wide(wide_bytes, (offset + 3) % 32), back(content.size(), 31 - offset);
          cast({half, DType::f32}, in.data(), wide.data(), count);
          ASSERT_EQ(wide.content(), whole) << target;
          cast({DType::f32, half}, wide.data(), back.data(), count);
          ASSERT_EQ(back.content(), narrow) << target;
          ASSERT_TRUE(wide.guards_hold() && back.guards_hold()) << target << " " << count << " at " << offset;
        }
  });
}

TEST(Cast, HalvesSurviveTheRoundTrip) {
  const auto words = all_words();
  const Words in = bytes_of(words);
  for (const DType half : {DType::f16, DType::bf16}) {
    Words wide(in.size() * 2), back(in.size());
    cast({half, DType::f32}, in.data(), wide.data(), words.size());
    cast({DType::f32, half}, wide.data(), back.data(), words.size());
    const std::uint64_t infinity = testing::infinity_bits(half), quiet = half == DType::f16 ? 0x200 : 0x40;
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(testing::element<std::uint16_t>(back.data(), i), (i & 0x7fff) > infinity ? i | quiet : i);
  }
}

TEST(Cast, EqualTypesAreCopied) {
  for (const DType dtype : kDTypes) {
    const Words in = testing::any_elements(dtype, 33, 5);
    Words out(in.size());
    cast({dtype, dtype}, in.data(), out.data(), 33);
    EXPECT_EQ(out, in);
  }
}

TEST(Cast, OtherPairsAreMisuse) {
  std::byte in[8] = {}, out[8] = {};
  EXPECT_THROW(cast({DType::f16, DType::bf16}, in, out, 1), Misuse);
  EXPECT_THROW(cast({DType::f64, DType::f16}, in, out, 1), Misuse);
  EXPECT_THROW(cast({DType::i32, DType::f32}, in, out, 1), Misuse);
  EXPECT_THROW(cast({DType::f32, DType::i64}, in, out, 1), Misuse);
}

}  // namespace
}  // namespace syncopate::kernel
