// The index of rows: no insertion takes long, and every row is found while the index grows.
#include "server/rows/row_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace syncopate::server {
namespace {

/// A table of n slots has many rows to move when it doubles, and an insertion moves few of them.
TEST(RowIndexes, GrowByALimitedNumberOfSlotsInEachInsertion) {
  RowIndex index;
  std::size_t slots = index.slots(), unmoved = 0, growths = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    ASSERT_EQ(index.find(i * i), RowIndex::kNone);
    index.insert(i * i, i);
    if (index.slots() != slots) {
      ASSERT_EQ(unmoved, 0U) << "the table before has not moved yet";
      ASSERT_EQ(index.slots(), 2 * slots);
      unmoved = std::exchange(slots, index.slots());
      ++growths;
    }
    ASSERT_LE(unmoved - index.unmoved_slots(), RowIndex::kMovedAtOnce) << "insertion " << i;
    unmoved = index.unmoved_slots();
    for (const std::uint64_t place : {std::uint64_t{0}, i / 3, i / 2, i}) ASSERT_EQ(index.find(place * place), place);
  }
  EXPECT_GT(growths, 5U);
  for (std::uint64_t i = 0; i < 200'000; ++i) ASSERT_EQ(index.find(i * i), i);
}

/// The inverse of base::mixed.
std::uint64_t unmixed(std::uint64_t x) {
  x = x ^ (x >> 31) ^ (x >> 62);
  x *= 0x319642b2d24d8ec3;
  x = x ^ (x >> 27) ^ (x >> 54);
  x *= 0x96de1b173f119089;
  return x ^ (x >> 30) ^ (x >> 60);
}

/// Their equal low bits are their slots without a seed: a search would read all of them.
TEST(RowIndexes, AreNotSlowedDownByIdsThatAreChosenForTheMixer) {
  RowIndex index;
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t id = unmixed(i << 32);
    ASSERT_EQ(base::mixed(id), i << 32);
    index.insert(id, i);
    most = std::max(most, index.probes(id));
  }
  EXPECT_LT(most, 1000U);
}

}  // namespace
}  // namespace syncopate::server
