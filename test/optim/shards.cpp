// Shards: every element has one owner, parts lie at blocks, and ranks have about equally much of any run of tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "optim/norms.hpp"
#include "syncopate/error.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::test {
namespace {

using optim::kBlock;

/// Tensors as models have them: many small ones, some large ones, few that are whole blocks.
std::vector<std::size_t> drawn_tensors(std::uint64_t seed) {
  const base::CounterRandom random{seed};
  std::vector<std::size_t> tensors(60);
  for (std::uint32_t i = 0; i < tensors.size(); ++i)
    tensors[i] = 1 + random.below(i % 3 == 0 ? 40 * kBlock : 600, i) + (i % 7 == 0 ? 3 * kBlock : 0);
  return tensors;
}

TEST(Shards, EachElementHasOneOwnerAndPartsLieAtBlocks) {
  for (const int ranks : {1, 2, 3, 4, 7, 64}) {
    const auto tensors = drawn_tensors(static_cast<std::uint64_t>(ranks));
    const Shards shards(tensors, ranks);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::vector<Range> parts;
      for (int rank = 0; rank < ranks; ++rank)
        if (shards.of(i, rank).size() > 0) parts.push_back(shards.of(i, rank));
      std::ranges::sort(parts, {}, &Range::begin);
      std::size_t at = 0;
      for (const Range& part : parts) {
        EXPECT_EQ(part.begin, at);
        EXPECT_TRUE(part.end % kBlock == 0 || part.end == tensors[i]);
        at = part.end;
      }
      EXPECT_EQ(at, tensors[i]);
    }
  }
}

TEST(Shards, OfAnyConsecutiveTensorsTwoRanksDifferByTwoBlocksAtMost) {
  for (const int ranks : {2, 3, 4, 7, 16}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      auto tensors = drawn_tensors(seed);
      if (seed % 2 == 0) std::ranges::fill(tensors, static_cast<std::size_t>(ranks) * kBlock - kBlock + 1);
      const Shards shards(tensors, ranks);
      std::vector<std::vector<std::size_t>> loads(1, std::vector<std::size_t>(static_cast<std::size_t>(ranks)));
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        loads.push_back(loads.back());
        for (int rank = 0; rank < ranks; ++rank)
          loads.back()[static_cast<std::size_t>(rank)] += shards.of(i, rank).size();
      }
      for (std::size_t first = 0; first < tensors.size(); ++first)
        for (std::size_t last = first + 1; last < loads.size(); ++last) {
          std::vector<std::size_t> sums = loads[last];
          for (std::size_t rank = 0; rank < sums.size(); ++rank) sums[rank] -= loads[first][rank];
          ASSERT_LE(*std::ranges::max_element(sums) - *std::ranges::min_element(sums), 2 * kBlock);
        }
    }
  }
}

TEST(Shards, CutAndJoinedAreTheWhole) {
  const auto tensors = drawn_tensors(5);
  const Shards shards(tensors, 3);
  std::vector<float> whole(std::accumulate(tensors.begin(), tensors.end(), std::size_t{0})), joined(whole.size());
  std::iota(whole.begin(), whole.end(), 1.0F);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> part(shards.elements_of_rank(rank));
    shards.cut(whole, rank, part);
    shards.join(part, rank, joined);
  }
  EXPECT_EQ(joined, whole);
}

TEST(Shards, OfNoRankOrTensorThatIsThereAreRefused) {
  const std::vector<std::size_t> tensors{10, 20};
  EXPECT_THROW(Shards(tensors, 0), Misuse);
  const Shards shards(tensors, 2);
  EXPECT_THROW(static_cast<void>(shards.of(2, 0)), Misuse);
  EXPECT_THROW(static_cast<void>(shards.of(0, 2)), Misuse);
}

}  // namespace
}  // namespace syncopate::test
