// Mergeable rounds among ranks: a tree of any size sums each rank once, and lengths from outside are checked.
#include <gtest/gtest.h>

#include "ranks.hpp"
#include "sync/exchange.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

const std::vector<Gradient> kLayer{{.name = "layer", .elements = 6000, .rows = 60}};

TEST(MergeableRounds, SumEveryRankOnceWhateverTheirNumber) {
  for (const char* exchange : {"allreduce", "hierarchical"})
    for (int ranks = 1; ranks <= 9; ++ranks)
      test::on_groups(ranks,
                      [&](Group& group) {
                        Synchronizer synchronizer(group, kLayer,
                                                  {.coding = {.codec = "gtopk:1"}, .exchange = exchange});
                        const auto values = test::floats_of(synchronizer.gradient(0));
                        std::ranges::fill(values, static_cast<float>(1 << group.rank()));
                        synchronizer.ready(0);
                        synchronizer.wait();
                        const float expected = static_cast<float>((1 << ranks) - 1) / static_cast<float>(ranks);
                        for (const float value : values)
                          ASSERT_FLOAT_EQ(value, expected) << exchange << ", " << ranks << " ranks";
                      },
                      {.ranks_per_host = ranks % 2 == 0 ? 2 : 1});
}

// Rank 1 sends by hand: a length that no packet can have, and a packet that is none.
TEST(MergeableRounds, RefuseLengthsAndPacketsThatNobodyCanHaveSent) {
  for (const std::int64_t length : {std::int64_t{1} << 50, std::int64_t{-1}, std::int64_t{40}})
    test::on_groups(2, [&](Group& group) {
      Synchronizer synchronizer(group, kLayer, {.coding = {.codec = "gtopk:0.1"}});
      if (group.rank() == 0) {
        std::ranges::fill(test::floats_of(synchronizer.gradient(0)), 1.0F);
        synchronizer.ready(0);
        EXPECT_THROW(synchronizer.wait(), Corrupt) << length;
        return;
      }
      std::int64_t said = length;
      std::vector<std::byte> packet(40, std::byte{0xFF});
      const auto go_on = [&] {
        send(group, 0, Buffer(&said, 1, DType::i64), {.name = "layer"});
        if (length == 40) send(group, 0, Buffer(packet.data(), packet.size(), DType::u8), {.name = "layer"});
        barrier(group);
      };
      EXPECT_THROW(go_on(), RemoteFailure) << "rank 0 reports why it ends";
    });
}

}  // namespace
}  // namespace syncopate
