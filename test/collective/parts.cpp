// Calls that give lengths: parts of any length, bytes among them, and no memory of every length that was.
#include <gtest/gtest.h>

#include <numeric>

#include "collective/group/access.hpp"
#include "collective/group/impl.hpp"
#include "ranks.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {
namespace {

using Lengths = std::vector<std::size_t>;

std::size_t sum_of(const Lengths& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}); }

/// How many bytes `from` has for `to` in a round: from none to some frames.
std::size_t bytes_for(int from, int to, int round) {
  const auto kind = static_cast<std::size_t>((from + 2 * to + round) % 4);
  return kind == 0 ? 0 : kind * kind * kind * 10'007;
}

std::uint8_t byte_of(int from, int to, std::size_t i) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(from * 16 + to) + i);
}

/// One all-to-all of bytes, checked.
void swap_bytes(Group& group, int round, const CollectiveOptions& options) {
  const int size = group.size(), rank = group.rank();
  Lengths gives, gets;
  std::vector<std::uint8_t> in, wanted;
  for (int other = 0; other < size; ++other) {
    gives.push_back(bytes_for(rank, other, round));
    gets.push_back(bytes_for(other, rank, round));
    for (std::size_t i = 0; i < gives.back(); ++i) in.push_back(byte_of(rank, other, i));
    for (std::size_t i = 0; i < gets.back(); ++i) wanted.push_back(byte_of(other, rank, i));
  }
  const auto memory = group.allocate(wanted.size() + 1);
  const std::span out(memory.get(), wanted.size());
  alltoall_v(group, {std::span(in), gives}, {out, gets}, options);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), reinterpret_cast<const std::uint8_t*>(out.data())))
      << group.transport() << ", rank " << rank << ", round " << round;
}

TEST(AlltoallV, MovesPartsOfAnyLengthOnEveryTransport) {
  test::on_every_transport(4, [](Group& group) {
    for (int round = 0; round < 6; ++round) swap_bytes(group, round, {.name = "experts"});
  });
}

TEST(AlltoallV, OfOneRankCopies) {
  test::on_groups(1, [](Group& group) { swap_bytes(group, 1, {}); });
}

TEST(AlltoallV, OfNothingEndsAndIsInStepWithWhatFollows) {
  test::on_every_transport(3, [](Group& group) {
    const Lengths none(3);
    alltoall_v(group, {Buffer(), none}, {Buffer(), none});
    std::vector<float> values(7, 1);
    allreduce(group, std::span(values));
    EXPECT_EQ(values[6], 3);
  });
}

TEST(CallsThatGiveLengths, TakeNoMemoryForEachOfThem) {
  test::on_groups(2, [](Group& group) {
    for (std::size_t i = 1; i <= 300; ++i) {
      const Lengths there{i, 2 * i}, back = group.rank() == 0 ? Lengths{i, i} : Lengths{2 * i, 2 * i};
      const Lengths gives = group.rank() == 0 ? there : Lengths{i, 2 * i};
      std::vector<std::uint8_t> in(sum_of(gives)), out(sum_of(back));
      alltoall_v(group, {std::span(in), gives}, {std::span(out), back});
      std::vector<std::byte> all(sum_of(there));
      allgather_v(group, std::span(all), there);
    }
    EXPECT_LE(GroupAccess::impl(group).prepared(), 1U + 10U) << "one, and one for each power of two up to 900";
  });
}

TEST(Bytes, AreReducedAndMovedAtOddLengthsOnEveryTransport) {
  test::on_every_transport(3, [](Group& group) {
    for (const std::size_t count : {1UL, 7UL, 100'003UL, 700'001UL}) {
      const auto memory = group.allocate<std::uint8_t>(count);
      for (std::size_t i = 0; i < count; ++i)
        memory[i] = static_cast<std::uint8_t>(i + static_cast<std::size_t>(group.rank()) * 100);
      allreduce(group, std::span(memory.get(), count));
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(memory[i], static_cast<std::uint8_t>(3 * i + 300)) << group.transport() << ", element " << i;
      std::vector<std::byte> text(count, static_cast<std::byte>(group.rank()));
      broadcast(group, std::span(text), {.root = 2});
      EXPECT_EQ(text.back(), std::byte{2});
    }
  });
}

}  // namespace
}  // namespace syncopate
