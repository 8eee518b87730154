// The questions and answers of benchmarks: exact in every type, and no wrong element goes unseen.
#include "contender/pattern.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

using contender::Brain;
using contender::Half;
using contender::Pattern;
using contender::VectorPart;

template <class T>
double value_of(T element) {
  return static_cast<double>(element);
}
double value_of(Brain element) { return std::bit_cast<float>(std::uint32_t{element.word} << 16); }
double value_of(Half element) {
  const int exponent = element.word >> 10 & 31, mantissa = element.word & 1023;
  return exponent == 0 ? 0 : std::ldexp(1024 + mantissa, exponent - 25);
}

template <class T>
class EveryType : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t, std::int64_t, Half, Brain>;
TYPED_TEST_SUITE(EveryType, Types);

TYPED_TEST(EveryType, HoldsEachWholeNumberUpToItsLimit) {
  const std::uint32_t limit = std::min(contender::exact_limit<TypeParam>(), 1u << 12);
  for (std::uint32_t value = 0; value <= limit; ++value)
    ASSERT_EQ(value_of(contender::represent<TypeParam>(value)), value);
}

TYPED_TEST(EveryType, HoldsEachInputAndEachSumOverAllRanks) {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 7u, 64u})
    for (const char* op : {"sum", "min", "max", "average"}) {
      const Pattern pattern{"allreduce", op, ranks, 0};
      for (std::uint64_t i = 0; i < 500; ++i) {
        std::uint64_t sum = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          ASSERT_GE(pattern.input<TypeParam>(rank, i), 1u);
          sum += pattern.input<TypeParam>(rank, i);
        }
        const bool average = std::string(op) == "average";
        // Beyond that an average's inputs are all equal to the rank count, which stays exact for another reason.
        if (!average || ranks * ranks <= contender::exact_limit<TypeParam>()) {
          ASSERT_LE(sum, contender::exact_limit<TypeParam>());
        }
        ASSERT_EQ(average ? sum % ranks : 0, 0u);
      }
    }
}

TYPED_TEST(EveryType, HoldsEachProductAndTheLastRankChangesSome) {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 7u, 64u}) {
    const Pattern pattern{"allreduce", "product", ranks, 0};
    int of_last = 0;
    for (std::uint64_t i = 0; i < 512; ++i) {
      std::uint64_t product = 1;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) product *= pattern.input<TypeParam>(rank, i);
      ASSERT_LE(product, contender::exact_limit<TypeParam>());
      ASSERT_EQ(pattern.output<TypeParam>(i, 512), product);
      of_last += pattern.input<TypeParam>(ranks - 1, i) > 1 ? 1 : 0;
    }
    EXPECT_GT(of_last, 256 / static_cast<int>(ranks)) << ranks << " ranks";
  }
}

TEST(Pattern, AsksEachRankForSomethingElse) {
  const Pattern pattern{"allreduce", "sum", 2, 0};
  int equal = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) equal += pattern.input<float>(0, i) == pattern.input<float>(1, i);
  EXPECT_LT(equal, 20);
}

TEST(Pattern, AnswersWhatACollectiveOfItsNameComputes) {
  constexpr std::uint32_t kRanks = 3, kRoot = 1;
  constexpr std::size_t kCount = 10;  // parts of 4, 3 and 3
  const auto input = [](const Pattern& pattern, std::uint32_t rank, std::size_t i) {
    return pattern.input<float>(rank, i);
  };
  const Pattern sum{"allreduce", "sum", kRanks, kRoot}, least{"reduce", "min", kRanks, kRoot};
  const Pattern broadcast{"broadcast", "sum", kRanks, kRoot}, allgather{"allgather", "sum", kRanks, kRoot};
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(sum.output<float>(i, kCount), input(sum, 0, i) + input(sum, 1, i) + input(sum, 2, i));
    EXPECT_EQ(least.output<float>(i, kCount), std::min({input(least, 0, i), input(least, 1, i), input(least, 2, i)}));
    EXPECT_EQ(broadcast.output<float>(i, kCount), input(broadcast, kRoot, i));
    EXPECT_EQ(allgather.output<float>(i, kCount), input(allgather, i < 4 ? 0 : i < 7 ? 1 : 2, i));
  }
}

TEST(Pattern, AnswersOfRanksThatGetDifferentPartsDiffer) {
  const Pattern gather{"gather", "sum", 3, 1}, scatter{"scatter", "sum", 3, 1}, alltoall{"alltoall", "sum", 3, 0};
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(gather.output<float>(i, 12), gather.input<float>(static_cast<std::uint32_t>(i / 4), i));
    EXPECT_EQ(scatter.output<float>(i, 12), scatter.input<float>(1, i));
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(alltoall.output<float>(i, 12, rank),
                alltoall.input<float>(static_cast<std::uint32_t>(i / 4), rank * 4 + i % 4));
  }
}

TEST(Pattern, SeesASingleWrongElement) {
  const Pattern pattern{"allreduce", "sum", 2, 0};
  std::vector<float> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(pattern.output<float>(i, data.size()));
  const VectorPart whole{0, 0, data.size()};
  EXPECT_TRUE(pattern.right<float>(data, whole, data.size()));
  data[999] += 1;
  EXPECT_FALSE(pattern.right<float>(data, whole, data.size()));
}

TEST(Pattern, FindsAPartWhereverItLies) {
  const Pattern pattern{"reduce_scatter", "sum", 2, 0};
  const std::size_t count = 9;  // rank 1 owns elements 5..8; MPI leaves them at the start
  std::vector<float> data(count);
  for (std::size_t i = 5; i < count; ++i) data[i - 5] = static_cast<float>(pattern.output<float>(i, count));
  VectorPart part = contender::even_part(count, 2, 1);
  EXPECT_EQ(part.begin, 5u);
  part.at = 0;
  EXPECT_TRUE(pattern.right<float>(data, part, count));
  EXPECT_FALSE(pattern.right<float>(data, contender::even_part(count, 2, 1), count));
}

TEST(Pattern, AnUntouchedBroadcastIsNoAnswer) {
  const Pattern pattern{"broadcast", "sum", 2, 0};
  std::vector<float> data(16);
  pattern.ask<float>(1, data);
  for (std::size_t i = 0; i < data.size(); ++i) EXPECT_FALSE(pattern.right<float>(data, {i, i, i + 1}, data.size()));
}

}  // namespace
