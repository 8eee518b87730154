// Feedback as users choose it: what is refused, what a discarded step leaves, and when a sparse sum travels densely.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "base/random.hpp"
#include "compress/codec.hpp"
#include "ranks.hpp"
#include "sync/codec_state.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

constexpr std::size_t kElements = 8000;
const std::vector<Gradient> kModel{{.name = "fc", .elements = kElements, .rows = 80}, {.name = "bias", .elements = 10}};

void write(Synchronizer& synchronizer, int rank, int step, std::size_t gradient) {
  const base::CounterRandom random{static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step), gradient};
  const auto values = test::floats_of(synchronizer.gradient(gradient));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.uniform(i) - 0.5);
}

void backward(Synchronizer& synchronizer, int rank, int step) {
  for (std::size_t gradient = kModel.size(); gradient-- > 0;) {
    write(synchronizer, rank, step, gradient);
    synchronizer.ready(gradient);
  }
}

std::vector<float> combined(Synchronizer& synchronizer, int rank, int step, std::size_t gradient = 0) {
  backward(synchronizer, rank, step);
  synchronizer.wait();
  const auto values = test::floats_of(synchronizer.gradient(gradient));
  return {values.begin(), values.end()};
}

std::size_t not_zero(const std::vector<float>& values) {
  return values.size() - static_cast<std::size_t>(std::ranges::count(values, 0.0F));
}

std::string refusal(const SynchronizerOptions& options) {
  std::string text;
  test::on_groups(1, [&](Group& group) { text = test::thrown<Misuse>([&] { Synchronizer(group, kModel, options); }); });
  return text;
}

TEST(FeedbackOptions, ThatAreNotSoundAreRefusedByName) {
  const std::map<std::string, SynchronizerOptions> refused{
      {"allowed: auto, none", {.coding = {.codec = "fp16", .feedback = {.kind = FeedbackKind::residual}}}},
      {"its only loss is rounding", {.coding = {.codec = "none", .feedback = {.kind = FeedbackKind::momentum}}}},
      {"momentum is 1; allowed",
       {.coding = {.codec = "topk", .feedback = {.kind = FeedbackKind::momentum, .momentum = 1}}}},
      {"momentum is 0; allowed",
       {.coding = {.codec = "topk", .feedback = {.kind = FeedbackKind::momentum, .momentum = 0}}}},
      {"local clipping to -1; allowed", {.coding = {.codec = "topk", .feedback = {.clip_norm = -1}}}},
      {"clip_norm is -1; allowed", {.clip_norm = -1}},
      {"check_every is -1; allowed", {.check_every = -1}},
      {"without feedback", {.coding = {.codec = "topk", .feedback = {.kind = FeedbackKind::none, .clip_norm = 1}}}},
      {"averages are velocities; allowed: 0",
       {.coding = {.codec = "topk", .feedback = {.kind = FeedbackKind::momentum}}, .clip_norm = 1}},
      {"density above 0, at most 1",
       {.coding = {.codec = "topk", .feedback = {.warmup_density = 2, .warmup_steps = 3}}}},
      {"from density 1.25", {.coding = {.codec = "topk", .feedback = {.warmup_density = 1.25, .warmup_steps = 3}}}},
      {"from density -1", {.coding = {.codec = "topk", .feedback = {.warmup_density = -1}}}},
      {"and steps; or neither", {.coding = {.codec = "topk", .feedback = {.warmup_density = 0.5}}}},
      {"from density 0 in 3", {.coding = {.codec = "topk", .feedback = {.warmup_steps = 3}}}},
      {"codec fp16, which has no density",
       {.coding = {.codec = "fp16", .feedback = {.warmup_density = 0.5, .warmup_steps = 3}}}},
      {"density is '2'", {.coding = {.codec = "topk:2"}}},
      {"density is '0'", {.coding = {.codec = "topk:0"}}},
      {"density is 'x'", {.coding = {.codec = "topk:x"}}},
      {"at most 1, as in topk:0.01", {.coding = {.codec = "topk:0.1,3"}}},
  };
  for (const auto& [words, options] : refused) test::expect_words(refusal(options), {words});
}

TEST(FeedbackOptions, AreTakenUpToTheirLimits) {
  const std::vector<SynchronizerOptions> taken{
      {.coding = {.codec = "topk", .feedback = {.warmup_density = 1, .warmup_steps = 1}}},
      {.coding = {.codec = "topk", .feedback = {.kind = FeedbackKind::momentum, .momentum = 1e-6}}},
      {.coding = {.codec = "topk", .feedback = {.kind = FeedbackKind::momentum, .momentum = 0.999}}},
      {.coding = {.codec = "topk:1"}},
      {.clip_norm = 0},
      {.check_every = 0},
  };
  for (const SynchronizerOptions& options : taken) EXPECT_EQ(refusal(options), "no error");
}

TEST(FeedbackOptions, HaveNamesForEveryKind) {
  for (const FeedbackKind kind : kFeedbackKinds) EXPECT_EQ(feedback_named(name_of(kind)), kind);
  EXPECT_EQ(test::thrown<Misuse>([] { return feedback_named("echo"); }),
            "feedback 'echo' is unknown; allowed: auto, none, residual, momentum");
}

TEST(FeedbackOptions, ThatDifferBetweenRanksAreRefusedWithBoth) {
  test::on_groups(2, [](Group& group) {
    const FeedbackKind kind = group.rank() == 0 ? FeedbackKind::residual : FeedbackKind::momentum;
    const auto form = [&] {
      const Synchronizer synchronizer(group, kModel, {.coding = {.codec = "topk", .feedback = {.kind = kind}}});
      barrier(group);  // rank 0 may be through before it learns of it
    };                 // Mismatch where it was found, RemoteFailure elsewhere
    test::expect_thrown(form, {"feedback.kind momentum", "feedback.kind residual"});
  });
}

TEST(DiscardedStep, LeavesTheStateOfTheStepBefore) {
  test::on_groups(2, [](Group& group) {
    const SynchronizerOptions options{.coding = {.codec = "topk:0.02", .feedback = {.kind = FeedbackKind::momentum}}};
    Synchronizer with(group, kModel, options), without(group, kModel, options);
    EXPECT_THROW(with.discard_step(), Misuse);
    EXPECT_EQ(combined(with, group.rank(), 0), combined(without, group.rank(), 0));
    static_cast<void>(combined(with, group.rank(), 7));
    with.discard_step();
    EXPECT_THROW(with.discard_step(), Misuse);
    for (int step = 1; step < 4; ++step)
      EXPECT_EQ(combined(with, group.rank(), step), combined(without, group.rank(), step)) << step;
  });
}

/// Combines step `step`, in which rank 1's first element of the first gradient is `value`.
void combine_with(Synchronizer& synchronizer, int rank, int step, float value) {
  for (std::size_t gradient = kModel.size(); gradient-- > 0;) {
    write(synchronizer, rank, step, gradient);
    if (gradient == 0 && rank == 1) test::floats_of(synchronizer.gradient(gradient))[0] = value;
    synchronizer.ready(gradient);
  }
  synchronizer.wait();
}

/// Every codec with state between steps, with each kind of feedback that it takes.
std::vector<SynchronizerOptions> codings_with_state(std::vector<float>& weights) {
  std::vector<SynchronizerOptions> found;
  for (const compress::Codec* codec : compress::codecs())
    for (const FeedbackKind kind : {FeedbackKind::automatic, FeedbackKind::momentum}) {
      SynchronizerOptions options{.coding = {.codec = std::string(codec->name), .feedback = {.kind = kind}}};
      for (const Gradient& gradient : kModel)
        options.weights.push_back(Buffer(std::span(weights).first(gradient.elements)));
      try {
        if (compress::has_state(sync::codec_settings(options))) found.push_back(options);
      } catch (const Misuse&) {  // it does not take this kind
      }
    }
  return found;
}

TEST(StepThatIsNotFinite, OnOneRankChangesNoStateOnAnyRank) {
  std::vector<float> weights(kElements, 0.5F);
  const std::vector<SynchronizerOptions> codings = codings_with_state(weights);
  EXPECT_GT(codings.size(), 12U);
  for (const SynchronizerOptions& coding : codings)
    for (const std::string exchange : {"allreduce", "hierarchical"})
      for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
        test::on_groups(2, [&](Group& group) {
          SCOPED_TRACE(coding.coding.codec + ", " + std::string(name_of(coding.coding.feedback.kind)) + ", " +
                       exchange);
          SynchronizerOptions options = coding;
          options.exchange = exchange;
          Synchronizer with(group, kModel, options), without(group, kModel, options);
          EXPECT_EQ(combined(with, group.rank(), 0), combined(without, group.rank(), 0));
          combine_with(with, group.rank(), 1, value);
          EXPECT_EQ(with.save().gradients, without.save().gradients);
          with.discard_step();  // as a caller does that skips the update, without effect
          for (int step = 2; step < 4; ++step)
            EXPECT_EQ(combined(with, group.rank(), step), combined(without, group.rank(), step)) << step;
        });
}

TEST(SavedFeedback, GoesOnWhereItEnded) {
  test::on_groups(2, [](Group& group) {
    const SynchronizerOptions options{.coding = {.codec = "topk:0.02"}};
    Synchronizer first(group, kModel, options), second(group, kModel, options);
    for (int step = 0; step < 3; ++step) static_cast<void>(combined(first, group.rank(), step));
    static_cast<void>(combined(second, group.rank(), 0));
    second.restore(first.save());
    EXPECT_THROW(second.discard_step(), Misuse) << "the step before it is none of the restored state";
    EXPECT_EQ(combined(first, group.rank(), 3), combined(second, group.rank(), 3));
  });
}

TEST(SavedFeedback, BelongsToTheRankThatSavedIt) {
  std::vector<SavedCodecState> saved(2);
  test::on_groups(2, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.coding = {.codec = "topk:0.02"}});
    static_cast<void>(combined(synchronizer, group.rank(), 0));
    saved[static_cast<std::size_t>(group.rank())] = synchronizer.save();
    barrier(group);
    EXPECT_THROW(synchronizer.restore(saved[static_cast<std::size_t>(1 - group.rank())]), Misuse);
    EXPECT_NO_THROW(synchronizer.restore(saved[static_cast<std::size_t>(group.rank())]));
  });
  test::on_groups(1, [&](Group& group) {
    Synchronizer synchronizer(group, kModel, {.coding = {.codec = "topk:0.02"}});
    EXPECT_THROW(synchronizer.restore(saved[0]), Misuse) << "rank 0 of 1, not of 2";
  });
}

TEST(SavedFeedback, BelongsToTheCodecWithAnyParameters) {
  test::on_groups(2, [](Group& group) {
    const SynchronizerOptions options{.coding = {.codec = "topk:0.02"}};
    Synchronizer first(group, kModel, options);
    for (int step = 0; step < 3; ++step) static_cast<void>(combined(first, group.rank(), step));
    const SavedCodecState saved = first.save();
    Synchronizer denser(group, kModel,
                        {.coding = {.codec = "topk:0.05", .feedback = {.warmup_density = 0.5, .warmup_steps = 9}}});
    denser.restore(saved);
    EXPECT_EQ(denser.save().gradients, saved.gradients);
    EXPECT_NE(combined(denser, group.rank(), 3), combined(first, group.rank(), 3));
    Synchronizer other(group, kModel, {.coding = {.codec = "dgc:0.02"}});
    EXPECT_THROW(other.restore(saved), Misuse);
    Synchronizer momentum(group, kModel,
                          {.coding = {.codec = "topk:0.02", .feedback = {.kind = FeedbackKind::momentum}}});
    EXPECT_THROW(momentum.restore(saved), Misuse);
  });
}

// u' = m u + g with g = the average: of gradients that are too small to be coded too.
TEST(MomentumCorrection, ReturnsTheMomentumOfGradientsThatAreSentDense) {
  for (const bool nesterov : {false, true})
    test::on_groups(2, [&](Group& group) {
      Synchronizer plain(group, kModel),
          corrected(group, kModel,
                    {.coding = {.codec = "topk:0.02",
                                .feedback = {.kind = FeedbackKind::momentum, .momentum = 0.75, .nesterov = nesterov}}});
      std::vector<float> velocity(10);
      for (int step = 0; step < 4; ++step) {
        const auto average = combined(plain, group.rank(), step, 1), found = combined(corrected, group.rank(), step, 1);
        for (std::size_t i = 0; i < 10; ++i) {
          velocity[i] = 0.75F * velocity[i] + average[i];
          EXPECT_EQ(found[i], nesterov ? average[i] + 0.75F * velocity[i] : velocity[i]) << step;
        }
      }
    });
}

/// Bytes that this rank sends in one step.
std::uint64_t sent_in_step(Group& group, Synchronizer& synchronizer, int step) {
  const std::uint64_t before = group.traffic().sent_bytes;
  static_cast<void>(combined(synchronizer, group.rank(), step));
  return group.traffic().sent_bytes - before;
}

// Gathering three ranks' packets of all elements takes 12 bytes an element, an all-reduce takes 8.
TEST(SparseSums, ThatGrewDenseTravelAsAnAllReduce) {
  test::on_groups(3, [](Group& group) {
    Synchronizer plain(group, kModel), dense(group, kModel, {.coding = {.codec = "topk:1"}});
    Synchronizer sparse(group, kModel, {.coding = {.codec = "topk:0.1"}});
    for (int step = 0; step < 2; ++step)
      EXPECT_EQ(combined(plain, group.rank(), step), combined(dense, group.rank(), step));
    const std::uint64_t full = sent_in_step(group, plain, 2);
    EXPECT_LT(sent_in_step(group, dense, 2), full + 2000);
    EXPECT_LT(sent_in_step(group, sparse, 2), full / 2);
  });
}

// Hosts of two ranks and of one: the parts of a gradient are as many as the smallest host has ranks.
TEST(SparseSums, CrossUnequalHosts) {
  for (const char* codec : {"topk:0.05", "topk:1"})
    test::on_groups(3,
                    [&](Group& group) {
                      Synchronizer synchronizer(group, kModel,
                                                {.coding = {.codec = codec}, .exchange = "hierarchical"});
                      std::vector<double> sum(kElements), exact(kElements);
                      for (int step = 0; step < 60; ++step) {
                        const auto found = combined(synchronizer, group.rank(), 0);
                        for (std::size_t i = 0; i < kElements; ++i) sum[i] += found[i] / 60.0;
                      }
                      for (int rank = 0; rank < 3; ++rank) {
                        const base::CounterRandom random{static_cast<std::uint64_t>(rank), 0, 0};
                        for (std::size_t i = 0; i < kElements; ++i)
                          exact[i] += static_cast<float>(random.uniform(i) - 0.5) / 3.0;
                      }
                      double error = 0, norm = 0;
                      for (std::size_t i = 0; i < kElements; ++i) {
                        error += (sum[i] - exact[i]) * (sum[i] - exact[i]);
                        norm += exact[i] * exact[i];
                      }
                      EXPECT_LT(error, 0.06 * norm) << codec;
                    },
                    {.ranks_per_host = 2});
}

TEST(Warmup, BeginsWithItsDensityAndEndsWithTheCodecs) {
  test::on_groups(1, [](Group& group) {
    Synchronizer synchronizer(
        group, kModel, {.coding = {.codec = "topk:0.01", .feedback = {.warmup_density = 0.64, .warmup_steps = 3}}});
    // Equal ratios: 0.64, 0.16, 0.04, then 0.01.
    for (const std::size_t expected : {5120, 1280, 320, 80, 80}) {
      const auto step = static_cast<int>(expected % 7);
      EXPECT_NEAR(static_cast<double>(not_zero(combined(synchronizer, 0, step))), static_cast<double>(expected), 1);
    }
  });
}

}  // namespace
}  // namespace syncopate
