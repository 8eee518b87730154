// The templates of docs/extending.md obey the laws of their shelves.
#include <gtest/gtest.h>

#include <array>

#include "collective/algorithm.hpp"
#include "compress/coders.hpp"
#include "schedule/policy.hpp"
#include "server/placement.hpp"

namespace syncopate {

namespace compress::codec {
extern const Codec plain;
}
namespace collective::algorithm {
extern const Algorithm star;
}
namespace schedule::policy {
extern const Policy pairs;
}
namespace server::placement {
extern const Placement neighbours;
}

namespace {

TEST(CodecTemplate, EndsWithTheAverageOnEveryRank) {
  compress::test::Coders coders({.codec = &compress::codec::plain}, compress::test::vectors_of({5, 1}), 3);
  coders.fill([](std::size_t rank, std::size_t tensor, std::size_t i) {
    return static_cast<float>(rank * 6 + tensor * 3 + i);
  });
  coders.step();
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(coders.at(rank, 0).values[i], 6.0F + static_cast<float>(i));
    EXPECT_EQ(coders.at(rank, 1).values[0], 9.0F);
  }
}

TEST(CodecTemplate, RejectsAPacketOfAnotherLength) {
  compress::test::Coders coders({.codec = &compress::codec::plain}, compress::test::vectors_of({5}), 2);
  coders.damage = [](std::size_t /*rank*/, compress::test::Payload& payload) { payload.pop_back(); };
  EXPECT_THROW(coders.step(), Corrupt);
}

TEST(AlgorithmTemplate, IsAnAllReduceForEverySize) {
  for (std::uint32_t size = 2; size <= 64; ++size) {
    std::vector<Plan> plans;
    for (std::uint32_t rank = 0; rank < size; ++rank)
      plans.push_back(collective::algorithm::star.build({.rank = rank, .size = size}));
    EXPECT_EQ(verify_plans(plans, Collective::allreduce, 0), "") << size << " ranks";
  }
}

TEST(PolicyTemplate, CoversEveryLayerOnce) {
  for (std::size_t layers = 1; layers <= 9; ++layers) {
    schedule::Timeline timeline;
    timeline.layers.resize(layers);
    EXPECT_EQ(schedule::illegal(schedule::policy::pairs.partition(timeline, {}), layers), "") << layers << " layers";
  }
}

TEST(PlacementTemplate, PlacesEveryByteOnceWithinItsBound) {
  constexpr std::array<std::size_t, 7> kTables{4, 400, 0, 40, 8, 800, 12};
  for (std::size_t servers = 1; servers <= 9; ++servers) {
    const server::Demand demand{kTables, servers};
    const auto shards = server::shards_of(server::placement::neighbours, demand);
    EXPECT_EQ(server::misplaced(shards, demand), "") << servers << " servers";
    for (const std::size_t load : server::loads_of(shards, servers))
      EXPECT_LE(static_cast<double>(load), server::placement::neighbours.most_bytes(demand));
  }
}

}  // namespace
}  // namespace syncopate
