// The synchronizer: averages, overlap, agreement between ranks, and what happens when a gradient is missing.
#include "syncopate/synchronizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <latch>

#include "compress/codec.hpp"
#include "ranks.hpp"
#include "schedule/policy.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

const std::vector<Gradient> kModel{{"conv1", 300}, {"bn1", 7}, {"fc1", 5000}, {"fc1.bias", 1}, {"fc2", 129}};

float value(int rank, std::size_t gradient, std::size_t i) {
  return static_cast<float>(rank + 1) * static_cast<float>(gradient + 1) * static_cast<float>(i % 11);
}

void fill(Synchronizer& synchronizer, int rank, std::size_t gradient) {
  const Buffer buffer = synchronizer.gradient(gradient);
  auto* elements = static_cast<float*>(buffer.data);
  for (std::size_t i = 0; i < buffer.count; ++i) elements[i] = value(rank, gradient, i);
}

/// The backward pass: gradients become ready from the last to the first.
void backward(Synchronizer& synchronizer, int rank) {
  for (std::size_t gradient = kModel.size(); gradient-- > 0;) {
    fill(synchronizer, rank, gradient);
    synchronizer.ready(gradient);
  }
}

void expect_average(const Synchronizer& synchronizer, int ranks, float tolerance) {
  for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient) {
    const Buffer buffer = synchronizer.gradient(gradient);
    const auto* elements = static_cast<const float*>(buffer.data);
    for (std::size_t i = 0; i < buffer.count; ++i) {
      float sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += value(rank, gradient, i);
      ASSERT_NEAR(elements[i], sum / static_cast<float>(ranks), tolerance * std::abs(sum)) << kModel[gradient].name;
    }
  }
}

TEST(Synchronizer, AveragesWithEveryPolicyAndCodec) {
  for (const schedule::Policy* policy : schedule::policies())
    for (const compress::Codec* codec : test::rounding_codecs()) {
      if (policy->needs != schedule::Needs::sizes) continue;
      test::on_groups(3, [&](Group& group) {
        Synchronizer synchronizer(
            group, kModel,
            {.policy = std::string(policy->name), .fusion_bytes = 2000, .coding = {.codec = std::string(codec->name)}});
        for (int step = 0; step < 3; ++step) {
          backward(synchronizer, group.rank());
          synchronizer.wait();
          expect_average(synchronizer, 3, codec->name == "none" ? 1e-6F : 0.02F);
        }
      });
    }
}

TEST(Synchronizer, TrainsAloneWhenNothingIsExchanged) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.exchange = "none"});
    backward(synchronizer, group.rank());
    synchronizer.wait();
    const auto* elements = static_cast<const float*>(synchronizer.gradient(2).data);
    EXPECT_EQ(elements[1], value(group.rank(), 2, 1));
    EXPECT_EQ(synchronizer.statistics().wire_bytes, 0U);
  });
}

// A bucket of the last layers must arrive although the first layers are not ready yet.
TEST(Synchronizer, ExchangesWhileTheBackwardPassStillRuns) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.policy = "wfbp"});
    fill(synchronizer, group.rank(), 4);
    synchronizer.ready(4);
    synchronizer.wait(4);  // would never return if the exchange waited for the rest
    for (std::size_t gradient = 4; gradient-- > 0;) {
      fill(synchronizer, group.rank(), gradient);
      synchronizer.ready(gradient);
    }
    synchronizer.wait();
    expect_average(synchronizer, 2, 1e-6F);
  });
}

TEST(Synchronizer, TakesGradientsInAnyOrderEvenADifferentOneOnEveryRank) {
  test::on_groups(3, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.policy = "wfbp"});
    for (std::size_t i = 0; i < kModel.size(); ++i) {
      const std::size_t gradient = (i + static_cast<std::size_t>(group.rank()) * 2) % kModel.size();
      fill(synchronizer, group.rank(), gradient);
      synchronizer.ready(gradient);
    }
    synchronizer.wait();
    expect_average(synchronizer, 3, 1e-6F);
  });
}

TEST(Synchronizer, ExchangesAccumulatedGradientsOnce) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, {{"w", 4}});
    auto* elements = static_cast<float*>(synchronizer.gradient(0).data);
    synchronizer.accumulate(true);
    for (int micro = 0; micro < 3; ++micro) {
      elements[0] += static_cast<float>(group.rank() + 1);
      if (micro == 2) synchronizer.accumulate(false);
      synchronizer.ready(0);
    }
    synchronizer.wait();
    EXPECT_EQ(elements[0], 4.5F);
  });
}

TEST(Synchronizer, WaitingForOneGradientWhoseBucketIsNotReadyNamesWhatIsMissing) {
  test::on_groups(1, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.policy = "single"});
    synchronizer.ready(0);
    EXPECT_THROW(synchronizer.wait(0), Misuse);
  });
}

TEST(Synchronizer, CountsMissingGradientsAsZeroOnRequest) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.zero_missing = true});
    for (std::size_t gradient = kModel.size(); gradient-- > 0;) {
      fill(synchronizer, group.rank(), gradient);
      if (group.rank() == 0 || gradient != 2) synchronizer.ready(gradient);
    }
    synchronizer.wait();
    const auto* elements = static_cast<const float*>(synchronizer.gradient(2).data);
    EXPECT_EQ(elements[1], value(0, 2, 1) / 2);
  });
}

TEST(Synchronizer, CountsAsZeroWhatAWaitNeedsAndNothingElse) {
  test::on_groups(2,
                  [&](Group& group) {
                    Synchronizer synchronizer(group, kModel, {.policy = "wfbp", .zero_missing = true});
                    const auto finish = [&](std::size_t gradient) {
                      fill(synchronizer, group.rank(), gradient);
                      synchronizer.ready(gradient);
                    };
                    finish(4);
                    if (group.rank() == 0) finish(3);
                    synchronizer.wait(3);
                    EXPECT_EQ(static_cast<const float*>(synchronizer.gradient(3).data)[0], value(0, 3, 0) / 2);
                    for (std::size_t gradient = 3; gradient-- > 0;) finish(gradient);
                    synchronizer.wait();
                    EXPECT_EQ(static_cast<const float*>(synchronizer.gradient(2).data)[1],
                              (value(0, 2, 1) + value(1, 2, 1)) / 2);
                  },
                  {.timeout = std::chrono::seconds(20)});
}

TEST(Synchronizer, CountsWhatCodecsEncodedInAStepBeginningFromZero) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.coding = {.codec = "fp16", .dense_below = 0}});
    for (int step = 0; step < 3; ++step) {
      backward(synchronizer, group.rank());
      synchronizer.wait();
      EXPECT_EQ(synchronizer.statistics().payload_bytes, 2U * (300 + 7 + 5000 + 1 + 129)) << "step " << step;
    }
  });
}

TEST(Synchronizer, RefusesAGradientThatIsReadyTwice) {
  test::on_groups(1, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.policy = "single"});
    synchronizer.ready(3);
    EXPECT_THROW(synchronizer.ready(3), Misuse);
    EXPECT_THROW(synchronizer.ready(99), Misuse);
  });
}

TEST(Synchronizer, ClipsTheAverageToTheGlobalNorm) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, {{"a", 1}, {"b", 1}}, {.clip_norm = 1});
    static_cast<float*>(synchronizer.gradient(0).data)[0] = 3;
    static_cast<float*>(synchronizer.gradient(1).data)[0] = 4;
    synchronizer.ready(1);
    synchronizer.ready(0);
    synchronizer.wait();
    EXPECT_DOUBLE_EQ(synchronizer.statistics().gradient_norm, 5);
    EXPECT_NEAR(static_cast<float*>(synchronizer.gradient(0).data)[0], 0.6F, 1e-6);
    EXPECT_NEAR(static_cast<float*>(synchronizer.gradient(1).data)[0], 0.8F, 1e-6);
  });
}

TEST(Synchronizer, TakesTheNormOverGradientsOfAllTypes) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, {{"a", 1}, {"b", 1, DType::f64}}, {.clip_norm = 1});
    static_cast<float*>(synchronizer.gradient(0).data)[0] = 3;
    static_cast<double*>(synchronizer.gradient(1).data)[0] = 4;
    synchronizer.ready(1);
    synchronizer.ready(0);
    synchronizer.wait();
    EXPECT_DOUBLE_EQ(synchronizer.statistics().gradient_norm, 5);
    EXPECT_NEAR(static_cast<double*>(synchronizer.gradient(1).data)[0], 0.8, 1e-12);
  });
}

TEST(Synchronizer, ClipsNothingToANormThatIsNoNumber) {
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, {{"a", 1}, {"b", 1}}, {.clip_norm = 1});
    static_cast<float*>(synchronizer.gradient(0).data)[0] = std::nanf("");
    static_cast<float*>(synchronizer.gradient(1).data)[0] = 4;
    synchronizer.ready(1);
    synchronizer.ready(0);
    synchronizer.wait();
    EXPECT_TRUE(std::isnan(synchronizer.statistics().gradient_norm));
    EXPECT_EQ(static_cast<float*>(synchronizer.gradient(1).data)[0], 4) << "the other gradient stays what it was";
  });
}

TEST(Synchronizer, NamesTheFirstDifferenceBetweenTwoModels) {
  auto groups = Group::threads(3);
  const auto failures = test::outcomes(3, [&](int rank) {
    auto model = kModel;
    if (rank == 2) model[3].elements = 2;
    Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], model);
    backward(synchronizer, rank);
    synchronizer.wait();
  });
  for (const std::exception_ptr& failure : failures)
    test::expect_thrown(failure, {"gradient 3 is 'fc1.bias' f32 x 2 here and 'fc1.bias' f32 x 1"});
}

TEST(Synchronizer, RefusesAModelWithFewerGradients) {
  auto groups = Group::threads(2);
  const auto failures = test::outcomes(2, [&](int rank) {
    auto model = kModel;
    if (rank == 1) model.pop_back();
    Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], model);
  });
  test::expect_thrown<Mismatch>(failures[1], {"4 gradients here, 5 there"});
}

TEST(Synchronizer, RanksThatCountMissingGradientsDifferentlyAreAMismatch) {
  auto groups = Group::threads(2);
  const auto failures = test::outcomes(2, [&](int rank) {
    Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], kModel, {.zero_missing = rank == 1});
  });
  test::expect_thrown<Mismatch>(failures[1], {"zero_missing true on rank 1, zero_missing false on rank 0"});
}

TEST(Synchronizer, FollowsThePlanOfRankZero) {
  test::on_groups(3, [&](Group& group) {
    const SynchronizerOptions options{.policy = group.rank() == 0 ? "wfbp" : "single"};
    Synchronizer synchronizer(group, kModel, options);
    EXPECT_EQ(synchronizer.buckets().size(), kModel.size());
    backward(synchronizer, group.rank());
    synchronizer.wait();
    expect_average(synchronizer, 3, 1e-6F);
  });
}

/// Rank 0 drops its synchronizer when the others may begin, and goes on with other calls of the group.
void expect_step_without_waiting(SynchronizerOptions options) {
  std::latch is_ready(1);
  test::on_groups(3, [&](Group& group) {
    auto synchronizer = std::make_unique<Synchronizer>(group, kModel, options);
    if (group.rank() == 0) {
      backward(*synchronizer, 0);
      is_ready.count_down();
    } else {
      is_ready.wait();
      backward(*synchronizer, group.rank());
      synchronizer->wait();
      expect_average(*synchronizer, 3, options.coding.codec == "none" ? 1e-6F : 0.02F);
    }
    synchronizer.reset();
    barrier(group);
  });
}

TEST(Synchronizer, ARankThatDoesNotWaitForItsLastStepStillContributesToIt) {
  expect_step_without_waiting({.policy = "wfbp"});
  expect_step_without_waiting({.policy = "online"});
  expect_step_without_waiting({.policy = "wfbp", .coding = {.codec = "fp16"}});
}

TEST(Synchronizer, ARankThatDropsAStepSendsWhatIsReady) {
  test::on_groups(2, [&](Group& group) {
    auto synchronizer = std::make_unique<Synchronizer>(group, kModel, SynchronizerOptions{.policy = "wfbp"});
    for (std::size_t gradient = kModel.size(); gradient-- > 2;) synchronizer->ready(gradient);
    synchronizer.reset();  // of the two ranks' threads one may be far ahead
    barrier(group);
  });
}

TEST(Trace, HasOneSpanPerBucket) {
  test::on_groups(2, [&](Group& group) {
    Trace trace;
    Synchronizer synchronizer(group, kModel, {.policy = "wfbp", .trace = &trace});
    trace.restart();
    backward(synchronizer, group.rank());
    synchronizer.wait();
    trace.stop();
    std::size_t exchanges = 0;
    for (const Span& span : trace.spans()) {
      EXPECT_GE(span.end_s, span.begin_s);
      if (span.track == "exchange") ++exchanges;
    }
    EXPECT_EQ(exchanges, kModel.size());
    EXPECT_NE(chrome_trace({trace.spans()}).find("\"fc1.bias\""), std::string::npos);
  });
}

TEST(State, ComesFromRankZero) {
  test::on_groups(4, [&](Group& group) {
    std::vector<float> weights(1000, static_cast<float>(group.rank() + 5));
    std::vector<std::int64_t> steps(1, group.rank());
    const std::vector<Buffer> state{std::span(weights), std::span(steps)};
    broadcast_all(group, state);
    EXPECT_EQ(weights[999], 5);
    EXPECT_EQ(steps[0], 0);
  });
}

}  // namespace
}  // namespace syncopate
