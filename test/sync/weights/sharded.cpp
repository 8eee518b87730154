// Exchange sharded: each rank updates its shard, all have all weights, and the optimizer's state is divided.
#include <gtest/gtest.h>

#include <algorithm>

#include "ranks.hpp"
#include "sync/replica.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "syncopate/optimizer.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace test;

std::vector<std::vector<float>> weights_by(Group& group, const SynchronizerOptions& options, Order order) {
  Trained trained(group, options);
  train(trained, 4, order);
  return trained.replica.all();
}

class Sharded : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Sharded, testing::Values(1, 2, 3, 5));

// Two numbers have one sum; with more ranks the order of a reduction differs from algorithm to algorithm.
TEST_P(Sharded, GivesEveryRankTheWeightsOfRanksThatUpdateAll) {
  for (const char* policy : {"wfbp", "fusion", "single"})
    for (const Order order : {Order::serial, Order::overlapped})
      on_groups(GetParam(), [&](Group& group) {
        const SynchronizerOptions options{.policy = policy, .fusion_bytes = 2000, .exchange = "sharded"};
        SynchronizerOptions whole = options;
        whole.exchange = "allreduce_broadcast";
        const auto mine = weights_by(group, options, order), expected = weights_by(group, whole, order);
        for (std::size_t i = 0; i < kModel.size(); ++i) {
          std::vector<float> roots = mine[i];
          broadcast(group, std::span(roots));
          EXPECT_EQ(roots, mine[i]) << "ranks differ";
          for (std::size_t at = 0; at < mine[i].size(); ++at)
            ASSERT_NEAR(mine[i][at], expected[i][at], GetParam() > 2 ? 1e-4 : 0) << policy;
        }
      });
}

TEST_P(Sharded, UpdatesOnEveryRankAndLeavesNoGradientBehind) {
  on_groups(GetParam(), [&](Group& group) {
    Trained trained(group, {.policy = "wfbp", .exchange = "sharded"});
    train(trained, 3, Order::serial);
    EXPECT_EQ(trained.updates, 3 * static_cast<int>(kModel.size()));
    for (std::size_t i = 0; i < kModel.size(); ++i) {
      const Buffer left = trained.synchronizer->gradient(i);
      for (std::size_t at = 0; at < left.count; ++at) ASSERT_EQ(static_cast<const float*>(left.data)[at], 0);
    }
  });
}

/// Elements whose velocity is not zero: those that a rank has updated.
std::size_t moved(const Replica& replica, std::size_t gradient) {
  return static_cast<std::size_t>(
      std::ranges::count_if(replica.velocity[gradient], [](float value) { return value != 0; }));
}

TEST_P(Sharded, ARankUpdatesItsShardsAlone) {
  on_groups(GetParam(), [&](Group& group) {
    std::vector<std::size_t> sizes;
    for (const Gradient& gradient : kModel) sizes.push_back(gradient.elements);
    const Shards shards(sizes, group.size());
    Trained trained(group, {.policy = "single", .exchange = "sharded"});
    train(trained, 2, Order::serial);
    for (std::size_t i = 0; i < kModel.size(); ++i)
      EXPECT_EQ(moved(trained.replica, i), shards.of(i, group.rank()).size());
  });
}

TEST_P(Sharded, ClipsByTheNormOfAllShards) {
  on_groups(GetParam(), [&](Group& group) {
    std::vector<float> weights(2);
    const std::vector<Buffer> buffers{std::span(weights).first(1), std::span(weights).last(1)};
    Synchronizer* all = nullptr;
    SynchronizerOptions options{.policy = "wfbp", .exchange = "sharded", .clip_norm = 1, .weights = buffers};
    options.update = [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i <= last; ++i)
        weights[i] -= std::exchange(*static_cast<float*>(all->gradient(i).data), 0.0F);
    };
    Synchronizer synchronizer(group, {{"a", 1}, {"b", 1}}, options);
    all = &synchronizer;
    *static_cast<float*>(synchronizer.gradient(0).data) = 3;
    *static_cast<float*>(synchronizer.gradient(1).data) = 4;
    synchronizer.ready(1);
    synchronizer.ready(0);
    synchronizer.wait();
    EXPECT_NEAR(weights[0], -0.6F, 1e-6);
    EXPECT_NEAR(weights[1], -0.8F, 1e-6);
    EXPECT_DOUBLE_EQ(synchronizer.statistics().gradient_norm, 5);
  });
}

/// A model of which every rank has shards, and layer-wise updates of it that share their norms.
struct LayerWise {
  static constexpr std::size_t kCount = 3 * 4096 + 100;
  std::vector<Gradient> model{{"first", kCount}, {"second", 3 * kCount}};
  std::vector<float> weights[2] = {std::vector<float>(kCount, 0.5F), std::vector<float>(3 * kCount, -2.0F)};

  [[nodiscard]] Optimizer optimizer(std::optional<SharedUpdate> shared) {
    return Optimizer({{"first", std::span(weights[0])}, {"second", std::span(weights[1])}},
                     {.rule = "lamb", .shared = std::move(shared)});
  }
};

float drawn(int rank, int step, std::size_t i) {
  return static_cast<float>((i * 7 + 3) % 11) - 5 + static_cast<float>(rank * step);
}

// The gather of norms runs within the update, on the communication thread, while other buckets wait for it.
TEST(ShardedNorms, GiveTheBitsOfOneProcessThatAverages) {
  LayerWise whole;
  Optimizer alone = whole.optimizer({});
  for (int step = 1; step <= 3; ++step)
    for (std::size_t tensor = 0; tensor < 2; ++tensor) {
      std::vector<float> average(whole.weights[tensor].size());
      for (std::size_t i = 0; i < average.size(); ++i) average[i] = (drawn(0, step, i) + drawn(1, step, i)) / 2;
      alone.update(tensor, average, {.rate = 0.01, .step = static_cast<std::uint64_t>(step)});
    }
  on_groups(2, [&](Group& group) {
    LayerWise mine;
    const std::vector<std::size_t> sizes{LayerWise::kCount, 3 * LayerWise::kCount};
    Optimizer optimizer = mine.optimizer(SharedUpdate{.shards = Shards(sizes, 2),
                                                      .rank = group.rank(),
                                                      .own_shards_only = true,
                                                      .gather = gather_among(group, "norms")});
    Synchronizer* all = nullptr;
    std::uint64_t step = 1;
    SynchronizerOptions options{.policy = "wfbp", .exchange = "sharded"};
    options.weights = {std::span(mine.weights[0]), std::span(mine.weights[1])};
    options.update = [&](std::size_t first, std::size_t last) {
      ASSERT_EQ(first, last);
      const Buffer gradient = all->gradient(first);
      optimizer.update(first, std::span(static_cast<float*>(gradient.data), gradient.count),
                       {.rate = 0.01, .step = step});
    };
    Synchronizer synchronizer(group, mine.model, options);
    all = &synchronizer;
    for (; step <= 3; ++step) {
      for (std::size_t tensor = 2; tensor-- > 0;) {
        const Buffer gradient = synchronizer.gradient(tensor);
        for (std::size_t i = 0; i < gradient.count; ++i)
          static_cast<float*>(gradient.data)[i] += drawn(group.rank(), static_cast<int>(step), i);
        synchronizer.ready(tensor);
      }
      synchronizer.wait();
    }
    for (std::size_t tensor = 0; tensor < 2; ++tensor) EXPECT_EQ(mine.weights[tensor], whole.weights[tensor]);
    EXPECT_EQ(optimizer.state().front().values.size(), Shards(sizes, 2).elements_of_rank(group.rank()));
  });
}

TEST(ShardedRefusals, NameWhatIsAllowed) {
  on_groups(2, [&](Group& group) {
    const auto with = [&](SynchronizerOptions options) {
      return test::thrown<Misuse>([&] { Trained(group, options); });
    };
    EXPECT_EQ(
        with({.coding = {.codec = "fp16"}, .exchange = "sharded"}),
        "exchange sharded does not work with codec fp16: every rank updates its shard from uncoded gradients; allowed: "
        "codec 'none' only");
    EXPECT_NE(with({.exchange = "sharded", .algorithm = "mst"}).find("reduce_scatter"), std::string::npos);
    std::vector<double> wide(10);
    EXPECT_EQ(test::thrown<Misuse>([&] {
                Synchronizer(group, {{"a", 10}},
                             {.exchange = "sharded", .weights = {std::span(wide)}, .update = [](auto, auto) {}});
              }),
              "gradient 'a' is of type f32, its weights are of type f64; exchange sharded takes equal types");
  });
}

}  // namespace
}  // namespace syncopate
