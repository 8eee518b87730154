// Lossless blocks: every value is decoded bit-exactly, codes are optimal, and malicious bytes are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <queue>

#include "base/random.hpp"
#include "compress/codec.hpp"
#include "compress/coders.hpp"
#include "compress/lossless/block.hpp"
#include "compress/lossless/coder.hpp"
#include "kernel/cast.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::compress::lossless {
namespace {

using Values = std::vector<std::uint16_t>;

Values normal_values(std::size_t count, DType type) {
  const base::CounterRandom random{9};
  std::vector<float> floats(count);
  for (std::size_t i = 0; i < count; ++i)
    floats[i] = static_cast<float>(0.01 * std::sqrt(-2 * std::log(1 - random.uniform(2 * i))) *
                                   std::cos(6.283185307179586 * random.uniform(2 * i + 1)));
  Values values(count);
  kernel::cast({DType::f32, type}, reinterpret_cast<const std::byte*>(floats.data()),
               reinterpret_cast<std::byte*>(values.data()), count);
  return values;
}

std::vector<std::byte> written(const Values& values) {
  std::vector<std::byte> block(most_block_bytes(values.size()) + 16, std::byte{0xA5});
  block.resize(write_block(values, std::span(block).first(most_block_bytes(values.size()))));
  return block;
}

/// Reads a block, and checks that only the block is read.
Values read(std::vector<std::byte> block, std::size_t count) {
  const std::size_t length = block.size();
  block.push_back(std::byte{0x5A});
  Values values(count);
  EXPECT_EQ(read_block(block, values).size(), 1U) << length;
  return values;
}

TEST(LosslessBlock, BringsEveryPatternOfBitsBack) {
  Values all(65536);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  for (const std::size_t half : {0, 1}) {
    const Values part(all.begin() + static_cast<std::ptrdiff_t>(half * kBlock),
                      all.begin() + static_cast<std::ptrdiff_t>((half + 1) * kBlock));
    EXPECT_EQ(read(written(part), part.size()), part);
  }
}

TEST(LosslessBlock, BringsBlocksOfEveryLengthBack) {
  const Values bf16 = normal_values(kBlock, DType::bf16), fp16 = normal_values(kBlock, DType::f16);
  const Values equal(kBlock, 0x3F80), zeros(kBlock);
  for (const Values& all : {bf16, fp16, equal, zeros})
    for (std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}, std::size_t{15},
          std::size_t{16}, std::size_t{17}, std::size_t{63}, std::size_t{1001}, kBlock - 1, kBlock}) {
      const Values values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
      const auto block = written(values);
      EXPECT_LE(block.size(), most_block_bytes(count));
      EXPECT_EQ(read(block, count), values) << count;
    }
}

TEST(LosslessBlock, IsRawWhereNothingGetsShorterAndNeverLonger) {
  const base::CounterRandom random{3};
  Values noise(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) noise[i] = static_cast<std::uint16_t>(random.below(65536, i));
  const auto block = written(noise);
  EXPECT_EQ(block.size(), most_block_bytes(kBlock));
  EXPECT_EQ(block[0], std::byte{0});
  EXPECT_EQ(read(block, kBlock), noise);
}

// The exponents of normal elements have 2.55 bits of entropy, or 5.5 with three bits of the mantissa. Header and code
// cost 2 %.
TEST(LosslessBlock, TakesAboutTheEntropyOfItsUpperBytes) {
  for (const DType type : {DType::bf16, DType::f16}) {
    const Values values = normal_values(kBlock, type);
    std::array<double, 256> counts{};
    for (const std::uint16_t value : values) ++counts[(value >> 7) & 0xff];
    double bits = 8 * kBlock;
    for (const double count : counts)
      if (count > 0) bits += count * std::log2(kBlock / count);
    const auto bytes = static_cast<double>(written(values).size());
    EXPECT_GE(bytes, bits / 8);
    EXPECT_LE(bytes, 1.02 * bits / 8) << name_of(type) << ": " << 8 * bytes / kBlock << " bits an element";
  }
}

/// The total bits of an unlimited Huffman code.
std::uint64_t huffman_bits(const Counts& counts) {
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> weights;
  for (const std::uint32_t count : counts)
    if (count > 0) weights.push(count);
  std::uint64_t bits = 0;
  while (weights.size() > 1) {
    const std::uint64_t first = weights.top();
    weights.pop();
    const std::uint64_t both = first + weights.top();
    weights.pop();
    bits += both;
    weights.push(both);
  }
  return bits;
}

TEST(PrefixCode, IsHuffmansWhereTheLimitDoesNotBindAndCompleteAlways) {
  const base::CounterRandom random{5};
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    Counts counts{};
    const std::uint32_t symbols = 2 + random.below(255, 3 * trial);
    const bool skewed = trial % 3 == 0;
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol)
      counts[symbol] = skewed ? 1U << (symbol % 25) : 1 + random.below(16, 1000 * trial + symbol);
    const Lengths lengths = lengths_of(counts);
    std::uint64_t bits = 0, kraft = 0;
    for (std::size_t symbol = 0; symbol < symbols; ++symbol) {
      ASSERT_GE(lengths[symbol], 1);
      ASSERT_LE(lengths[symbol], kMostBits);
      bits += std::uint64_t{counts[symbol]} * lengths[symbol];
      kraft += 1U << (kMostBits - lengths[symbol]);
    }
    EXPECT_EQ(kraft, 1U << kMostBits) << "no word is wasted";
    if (!skewed) EXPECT_EQ(bits, huffman_bits(counts)) << symbols << " symbols";
    if (skewed) EXPECT_GE(bits, huffman_bits(counts));
  }
}

// Fifteen weights that double: compares with the optimum under the limit, found by trying all lengths.
TEST(PrefixCode, IsTheBestUnderItsLimit) {
  Counts counts{};
  std::uint32_t weight = 1;
  for (std::size_t symbol = 0; symbol < 15; ++symbol, weight *= 2) counts[symbol] = weight;
  const Lengths lengths = lengths_of(counts);
  // Without a limit the lightest two have 14 bits. Lengths decrease with weights, so all non-increasing lengths
  // suffice.
  std::uint64_t best = UINT64_MAX;
  const std::function<void(std::size_t, unsigned, unsigned, std::uint64_t)> attempt = [&](std::size_t symbol,
                                                                                          unsigned most, unsigned used,
                                                                                          std::uint64_t bits) {
    if (used > (1U << kMostBits) || bits >= best) return;
    if (symbol == 15) {
      best = bits;
      return;
    }
    for (unsigned length = 1; length <= most; ++length)
      attempt(symbol + 1, length, used + (1U << (kMostBits - length)), bits + std::uint64_t{counts[symbol]} * length);
  };
  attempt(0, kMostBits, 0, 0);
  std::uint64_t bits = 0;
  for (std::size_t symbol = 0; symbol < 15; ++symbol) bits += std::uint64_t{counts[symbol]} * lengths[symbol];
  EXPECT_EQ(bits, best);
}

TEST(LosslessBlock, RefusesOrReadsDamagedBytesAndNothingElse) {
  const Values values = normal_values(3000, DType::bf16);
  const auto good = written(values);
  const base::CounterRandom random{8};
  std::uint64_t draw = 0, refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    auto block = good;
    for (std::uint32_t flips = 1 + random.below(4, draw++); flips > 0; --flips, draw += 2)
      block[random.below(trial % 2 == 0 ? 40 : static_cast<std::uint32_t>(block.size()), draw)] ^=
          std::byte(1 + random.below(255, draw + 1));
    if (trial % 5 == 0) block.resize(random.below(static_cast<std::uint32_t>(block.size()), draw++));
    Values into(values.size());
    try {
      EXPECT_LE(read_block(block, into).size(), block.size());
    } catch (const Corrupt&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000U);
  for (std::size_t length = 0; length < good.size(); ++length) {
    Values into(values.size());
    EXPECT_THROW(std::ignore = read_block(std::span(good).first(length), into), Corrupt) << length;
  }
}

TEST(LosslessBlock, HasAWordForTheOnlyValueOfItsExponentAtAnOddEnd) {
  Values values = normal_values(3001, DType::bf16);
  values.back() = 0x7E80;
  const auto block = written(values);
  ASSERT_EQ(block[0], std::byte{1});
  EXPECT_EQ(read(block, values.size()), values);
}

void expect_corrupt(const std::vector<std::byte>& block, std::size_t count, const std::string& why) {
  Values into(count);
  syncopate::test::expect_thrown<Corrupt>([&] { return read_block(block, into); }, {why});
}

TEST(LosslessBlock, RefusesACodeThatCannotBe) {
  auto block = written(normal_values(3000, DType::bf16));
  const std::size_t symbols = std::to_integer<std::size_t>(block[2]) - std::to_integer<std::size_t>(block[1]) + 1;
  ASSERT_GE(symbols, 3U);
  std::fill_n(block.begin() + 3, (symbols + 1) / 2, std::byte{0});
  block[3] = std::byte{0x11};  // three words of one bit
  block[4] = std::byte{0x01};
  expect_corrupt(block, 3000, "exceed Kraft's bound");
}

/// A coded block of one value, whose stream has these bytes; the words of symbols 0 to 2 have these lengths.
std::vector<std::byte> block_of(std::array<unsigned, 3> lengths, const std::vector<std::uint8_t>& stream) {
  std::vector<std::byte> block{std::byte{1}, std::byte{0}, std::byte{2}, std::byte(lengths[0] | lengths[1] << 4),
                               std::byte(lengths[2])};
  for (std::size_t s = 0; s < 4; ++s) {  // the first stream has the only value
    block.push_back(std::byte(s == 0 ? stream.size() : 0));
    block.push_back(std::byte{0});
  }
  block.push_back(std::byte{0});  // the value's lower byte
  for (const std::uint8_t byte : stream) block.push_back(std::byte{byte});
  return block;
}

TEST(LosslessBlock, TakesCodesAndStreamsUpToTheirLimits) {
  EXPECT_EQ(read(block_of({1, 2, 2}, {0}), 1), Values{0}) << "a complete code";
  EXPECT_EQ(read(block_of({12, 1, 0}, {0}), 1), Values{0x80}) << "the longest word; the shorter one comes first";
  EXPECT_EQ(read(block_of({12, 1, 0}, {1, 0}), 1), Values{0}) << "a word of 12 bits in two bytes";
  EXPECT_EQ(read(block_of({8, 1, 0}, {1}), 1), Values{0}) << "a word of 8 bits in one byte";
  expect_corrupt(block_of({8, 1, 0}, {1, 0}), 1, "do not end with its values");
  expect_corrupt(block_of({9, 1, 0}, {1}), 1, "do not end with its values");
  expect_corrupt(block_of({13, 1, 0}, {0}), 1, "a code word is too long");
  expect_corrupt(block_of({1, 1, 12}, {0}), 1, "exceed Kraft's bound");
  expect_corrupt(block_of({1, 2, 2}, {0, 0}), 1, "do not end with its values");
  expect_corrupt(block_of({1, 2, 2}, {0b10000000}), 1, "do not end with its values");
  expect_corrupt(block_of({1, 2, 2}, {}), 1, "do not end with its values");
}

TEST(LosslessBlock, OfNoValuesIsAHeader) {
  std::vector<std::byte> block(12);
  block[0] = std::byte{1};  // coded; of symbol 0, without words
  EXPECT_TRUE(read_block(block, {}).empty());
  block[1] = std::byte{1};
  expect_corrupt(block, 0, "it ends in its header");  // the first symbol is behind the last
}

TEST(LosslessBlock, MayBeThePacketsLastAndIsRefusedWithOneByteLess) {
  Values noise(100), into(100);
  std::iota(noise.begin(), noise.end(), std::uint16_t{0});
  for (std::uint16_t& value : noise) value = static_cast<std::uint16_t>(value * 40503U);
  for (const Values& values : {noise, Values(100)}) {
    const auto block = written(values);
    EXPECT_EQ(block[0], std::byte(values == noise ? 0 : 1));
    EXPECT_TRUE(read_block(block, into).empty());
    EXPECT_EQ(into, values);
    for (std::size_t length = 0; length < block.size(); ++length) {
      const std::vector<std::byte> cut(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_THROW(std::ignore = read_block(cut, into), Corrupt) << length;
    }
  }
  std::vector<std::byte> room(most_block_bytes(kBlock + 1));
  EXPECT_THROW(std::ignore = write_block(Values(kBlock + 1), room), Misuse);
}

TEST(LosslessBlock, RefusesAStreamThatIsLongerThanItsValues) {
  auto block = written(normal_values(3000, DType::bf16));
  const std::size_t symbols = std::to_integer<std::size_t>(block[2]) - std::to_integer<std::size_t>(block[1]) + 1;
  auto& bytes_of_last = block[3 + (symbols + 1) / 2 + 6];
  ASSERT_NE(bytes_of_last, std::byte{0xff});
  bytes_of_last = std::byte(std::to_integer<unsigned>(bytes_of_last) + 1);
  block.push_back(std::byte{0});
  expect_corrupt(block, 3000, "do not end with its values");
}

TEST(LosslessPackets, EndWithTheirLastBlock) {
  std::vector<float> values(1000, 1.5F);
  const std::vector<Tensor> tensors{{.values = Buffer(std::span(values)), .key = 1}};
  std::vector<std::byte> wire(lossless_bytes(tensors));
  const auto coder = lossless_coder(DType::bf16);
  const Round round = coder->begin(tensors, {.step = 1, .rank = 0, .ranks = 1}, wire);
  std::vector<std::byte> packet(round.payload.bytes().begin(), round.payload.bytes().end());
  packet.push_back(std::byte{0});
  const std::array<base::ConstBytes, 1> answer{packet};
  EXPECT_THROW(std::ignore = coder->next({.packets = answer}), Corrupt);
}

class LosslessCodec : public testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(Of, LosslessCodec,
                         testing::Combine(testing::Values("lossless:bf16", "lossless:fp16"),
                                          testing::Values(1, 2, 3, 7)));

// Values are rounded to 16 bits when sent, and the average once more; integers below 128 are exact in 16 bits.
TEST_P(LosslessCodec, RoundsTheAverageOfExactSumsOnce) {
  const auto& [name, ranks] = GetParam();
  const DType type = std::string_view(name) == "lossless:bf16" ? DType::bf16 : DType::f16;
  test::Coders coders(settings_of(name), test::vectors_of({kBlock + 5, 3, 40000}), ranks);
  const base::CounterRandom random{2};
  coders.fill([&](std::size_t rank, std::size_t tensor, std::size_t i) {
    return static_cast<float>(random.below(255, (rank << 40) + (tensor << 30) + i)) - 127.0F;
  });
  std::vector<std::vector<double>> sums;
  for (std::size_t tensor = 0; tensor < 3; ++tensor) {
    auto& sum = sums.emplace_back(coders.at(0, tensor).values.size());
    for (std::size_t rank = 0; rank < coders.size(); ++rank)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += coders.at(rank, tensor).values[i];
  }
  coders.step();
  for (std::size_t tensor = 0; tensor < 3; ++tensor)
    for (std::size_t i = 0; i < sums[tensor].size(); ++i) {
      const auto exact = static_cast<float>(sums[tensor][i] / ranks);
      std::uint16_t narrow = 0;
      float expected = 0;
      kernel::cast({DType::f32, type}, reinterpret_cast<const std::byte*>(&exact),
                   reinterpret_cast<std::byte*>(&narrow), 1);
      kernel::cast({type, DType::f32}, reinterpret_cast<const std::byte*>(&narrow),
                   reinterpret_cast<std::byte*>(&expected), 1);
      for (std::size_t rank = 0; rank < coders.size(); ++rank)
        ASSERT_EQ(coders.at(rank, tensor).values[i], expected) << "tensor " << tensor << "[" << i << "]";
    }
}

TEST(LosslessTypes, AreNamed) {
  EXPECT_THROW(std::ignore = settings_of("lossless:fp8"), Misuse);
  EXPECT_EQ(settings_of("lossless").codec, settings_of("lossless:bf16").codec);
}

}  // namespace
}  // namespace syncopate::compress::lossless
