// Exchanges that end in weights: equal to the serial order bit for bit, overlapping both passes.
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <map>
#include <optional>

#include "compress/codec.hpp"
#include "ranks.hpp"
#include "sync/replica.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

/// The same operations one after another: all gradients, all updates, all weights, bucket by bucket.
std::vector<std::vector<float>> serially(Group& group, std::span<const BucketInfo> buckets, int steps) {
  Replica replica(0);
  std::vector<float> arena(6000);
  std::vector<Buffer> gradients;
  std::size_t offset = 0;
  for (const Gradient& gradient : kModel) {
    gradients.emplace_back(arena.data() + offset, gradient.elements, DType::f32);
    offset += gradient.elements;
  }
  for (int step = 0; step < steps; ++step) {
    std::ranges::fill(arena, 0.0F);
    for (std::size_t i = 0; i < kModel.size(); ++i) add_gradient(gradients[i], group.rank(), step, i);
    for (const BucketInfo& bucket : buckets)
      reduce(group, Buffer(gradients[bucket.first].data, bucket.bytes / 4, DType::f32), {.op = ReduceOp::average});
    for (std::size_t i = 0; i < kModel.size() && group.rank() == 0; ++i) replica.update(gradients[i], i);
    for (const Buffer& weights : replica.weights) broadcast(group, weights);
  }
  return replica.all();
}

class ReduceBroadcast : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ReduceBroadcast, testing::Range(1, 6));

TEST_P(ReduceBroadcast, GivesTheWeightsOfTheSerialOrderBitForBit) {
  for (const char* policy : {"wfbp", "fusion", "single"})
    for (const Order order : {Order::serial, Order::overlapped})
      test::on_groups(GetParam(), [&](Group& group) {
        Trained trained(group, {.policy = policy, .fusion_bytes = 2000, .exchange = "reduce_broadcast"});
        train(trained, 4, order);
        EXPECT_EQ(trained.replica.all(), serially(group, trained.synchronizer->buckets(), 4)) << policy;
      });
}

TEST_P(ReduceBroadcast, UpdatesOnTheRootAloneAndLeavesNoGradientBehind) {
  test::on_groups(GetParam(), [&](Group& group) {
    Trained trained(group, {.policy = "wfbp", .exchange = "reduce_broadcast"});
    train(trained, 3, Order::serial);
    EXPECT_EQ(trained.updates, group.rank() == 0 ? 3 * static_cast<int>(kModel.size()) : 0);
    const auto* left = static_cast<const float*>(trained.synchronizer->gradient(2).data);
    for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(left[i], 0);
  });
}

TEST_P(ReduceBroadcast, ClipsByTheNormOfTheAverageOnTheRoot) {
  test::on_groups(GetParam(), [&](Group& group) {
    std::vector<float> weights(2);
    std::vector<Buffer> buffers{std::span(weights).first(1), std::span(weights).last(1)};
    Synchronizer* all = nullptr;
    SynchronizerOptions options{.policy = "wfbp", .exchange = "reduce_broadcast", .clip_norm = 1, .weights = buffers};
    options.update = [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i <= last; ++i) weights[i] -= *static_cast<float*>(all->gradient(i).data);
    };
    Synchronizer synchronizer(group, {{"a", 1}, {"b", 1}}, options);
    all = &synchronizer;
    *static_cast<float*>(synchronizer.gradient(0).data) = 3;
    *static_cast<float*>(synchronizer.gradient(1).data) = 4;
    synchronizer.ready(1);
    synchronizer.ready(0);
    synchronizer.wait(0);
    EXPECT_NEAR(weights[0], -0.6F, 1e-6);
    synchronizer.wait();
    EXPECT_NEAR(weights[1], -0.8F, 1e-6);
    EXPECT_DOUBLE_EQ(synchronizer.statistics().gradient_norm, group.rank() == 0 ? 5 : 0);
  });
}

TEST_P(ReduceBroadcast, TakesEveryCodecThatRoundsInOneRound) {
  for (const compress::Codec* codec : test::rounding_codecs()) {
    if (!codec->one_round) continue;
    test::on_groups(GetParam(), [&](Group& group) {
      Trained trained(group, {.coding = {.codec = std::string(codec->name)}, .exchange = "reduce_broadcast"});
      train(trained, 2, Order::overlapped);
      std::vector<float> exact = serially(group, trained.synchronizer->buckets(), 2)[2];
      for (std::size_t i = 0; i < exact.size(); ++i)
        ASSERT_NEAR(trained.replica.value(2, i), exact[i], 0.02) << codec->name;
    });
  }
}

// Packets are gathered on the root alone, which then does what every rank does after an all-gather.
TEST_P(ReduceBroadcast, TakesEveryCodecOfOneRound) {
  for (const compress::Codec* codec : compress::codecs()) {
    if (!codec->one_round || codec->feedback == compress::FeedbackUse::pointless) continue;
    test::on_groups(GetParam(), [&](Group& group) {
      const auto weights_by = [&](const char* exchange) {
        Trained trained(group, {.policy = "single",
                                .coding = {.codec = std::string(codec->name), .dense_below = 100},
                                .exchange = exchange});
        train(trained, 3, Order::serial);
        return trained.replica.all();
      };
      const auto here = weights_by("reduce_broadcast"), everywhere = weights_by("allreduce_broadcast");
      for (const std::size_t coded : {0, 2, 4})  // the others are dense, and their sums have an order of their own
        for (std::size_t i = 0; i < here[coded].size(); ++i)
          ASSERT_NEAR(here[coded][i], everywhere[coded][i], codec->combines.additive ? 1e-5 : 0)
              << codec->name << ", gradient " << coded << "[" << i << "]";
    });
  }
}

// A latch that opens only if the weights of the first bucket arrive while the last bucket's are still to be made.
TEST(ExchangeInWeights, BringsTheFirstLayersWeightsWhileTheLastOnesAreStillToCome) {
  std::latch first_arrived(1);
  test::on_groups(2,
                  [&](Group& group) {
                    SynchronizerOptions options{.policy = "wfbp", .exchange = "reduce_broadcast", .clip_norm = 1e9};
                    options.update = [&](std::size_t first, std::size_t) {
                      if (first == 4) first_arrived.wait();
                    };
                    Trained trained(group, options);
                    trained.backward(0);
                    trained.synchronizer->wait(0);
                    if (group.rank() == 1) first_arrived.count_down();
                    trained.synchronizer->wait();
                  },
                  {.timeout = 20s});
}

// The update of the last layer runs although the backward pass has not reached the others.
TEST(ExchangeInWeights, ReducesAndUpdatesWhileTheBackwardPassStillRuns) {
  std::promise<std::size_t> updated;
  test::on_groups(2, [&](Group& group) {
    SynchronizerOptions options{.policy = "wfbp", .exchange = "reduce_broadcast"};
    options.update = [&](std::size_t first, std::size_t) {
      if (first == 4) updated.set_value(first);
    };
    Trained trained(group, options);
    trained.synchronizer->ready(4);
    if (group.rank() == 0) {
      EXPECT_EQ(updated.get_future().wait_for(20s), std::future_status::ready);
    }
    for (std::size_t i = 4; i-- > 0;) trained.synchronizer->ready(i);
    trained.synchronizer->wait();
  });
}

TEST(ExchangeInWeights, AddsUpMicroBatches) {
  test::on_groups(3, [&](Group& group) {
    for (const char* exchange : {"reduce_broadcast", "allreduce_broadcast"}) {
      Trained whole(group, {.exchange = exchange}), parts(group, {.exchange = exchange});
      for (std::size_t i = 0; i < kModel.size(); ++i)
        for (int twice = 0; twice < 2; ++twice) add_gradient(whole.synchronizer->gradient(i), group.rank(), 3, i);
      for (std::size_t i = 0; i < kModel.size(); ++i) whole.synchronizer->ready(i);
      whole.synchronizer->wait();
      parts.synchronizer->accumulate(true);
      parts.backward(3);
      parts.synchronizer->accumulate(false);
      parts.backward(3);
      parts.synchronizer->wait();
      EXPECT_EQ(parts.replica.all(), whole.replica.all());
      EXPECT_EQ(parts.updates, whole.updates);
    }
  });
}

TEST(AllreduceBroadcast, UpdatesEverywhereAndMakesRanksEqualEveryKSteps) {
  for (const int every : {1, 3})
    test::on_groups(4, [&](Group& group) {
      Trained trained(group, {.exchange = "allreduce_broadcast", .broadcast_every = every});
      for (int step = 0; step < 2 * every; ++step) {
        if (group.rank() == 2 && step % every == 0) trained.replica.value(2, 77) += 1;  // rank 2 drifts
        trained.backward(step);
        trained.synchronizer->wait();
        float least = trained.replica.value(2, 77), most = least;
        allreduce(group, std::span(&least, 1), {.op = ReduceOp::min});
        allreduce(group, std::span(&most, 1), {.op = ReduceOp::max});
        EXPECT_EQ(least == most, (step + 1) % every == 0) << "step " << step;
      }
      EXPECT_GT(trained.updates, 0);
    });
}

// The same additions in the same order on every rank, so that a broadcast changes nothing.
TEST(AllreduceBroadcast, WithoutDriftIsAnAllreduceBitForBit) {
  test::on_groups(4, [&](Group& group) {
    Trained trained(group, {.exchange = "allreduce_broadcast", .broadcast_every = 2});
    train(trained, 5, Order::overlapped);
    Replica replica(0);
    Synchronizer plain(group, kModel);
    for (int step = 0; step < 5; ++step) {
      for (std::size_t i = kModel.size(); i-- > 0;) {
        add_gradient(plain.gradient(i), group.rank(), step, i);
        plain.ready(i);
      }
      plain.wait();
      for (std::size_t i = 0; i < kModel.size(); ++i) replica.update(plain.gradient(i), i);
    }
    EXPECT_EQ(trained.replica.all(), replica.all());
  });
}

// Rank 0 has the only updates of reduce_broadcast, and the others begin when it drops its synchronizer.
TEST(ExchangeInWeights, ARankThatDoesNotWaitForItsLastStepStillDeliversItsWeights) {
  for (const char* exchange : {"reduce_broadcast", "allreduce_broadcast"}) {
    const SynchronizerOptions options{.policy = "wfbp", .exchange = exchange};
    std::vector<std::vector<float>> expected;
    test::on_groups(3, [&](Group& group) {
      Trained trained(group, options);
      train(trained, 1, Order::serial);
      if (group.rank() == 0) expected = trained.replica.all();
    });
    std::latch is_ready(1);
    test::on_groups(3, [&](Group& group) {
      std::optional<Trained> trained(std::in_place, group, options);
      if (group.rank() == 0) {
        trained->backward(0);
        is_ready.count_down();
      } else {
        is_ready.wait();
        train(*trained, 1, Order::serial);
        EXPECT_EQ(trained->replica.all(), expected);
      }
      trained.reset();
      barrier(group);
    });
  }
}

TEST(ExchangeInWeights, HasSpansOfReductionsUpdatesAndBroadcasts) {
  test::on_groups(2, [&](Group& group) {
    Trace trace;
    Trained trained(group, {.policy = "wfbp", .exchange = "reduce_broadcast", .trace = &trace});
    trace.restart();
    train(trained, 1, Order::overlapped);
    trace.stop();
    std::map<std::string, std::vector<std::string>> names;
    for (const Span& span : trace.spans()) names[span.track].push_back(span.name);
    EXPECT_EQ(names["exchange"], (std::vector<std::string>{"fc2", "fc1.bias", "fc1", "bn1", "conv1"}));
    EXPECT_EQ(names["broadcast"], (std::vector<std::string>{"conv1", "bn1", "fc1", "fc1.bias", "fc2"}));
    EXPECT_EQ(names["update"].size(), group.rank() == 0 ? kModel.size() : 0);
  });
}

}  // namespace
}  // namespace syncopate
