// Rounds: codecs that speak in every kind of round, through the sentence, on several ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "ranks.hpp"
#include "sync/bench.hpp"
#include "sync/replica.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace test;

constexpr int kRanks = 3;

TEST(Rounds, GatherPacketsOfUnequalLengths) {
  on_groups(kRanks, [](Group& group) {
    Bench bench(group, kPairs, {{"a", 40}, {"b", 30}});
    for (int step = 0; step < 3; ++step) {
      for (const std::size_t i : {0, 1}) std::ranges::fill(bench.gradient(i), 0.0F);
      for (int i = 0; i <= group.rank() * (step + 1); ++i) bench.gradient(1)[static_cast<std::size_t>(i)] = 3;
      if (group.rank() == 0) bench.gradient(0)[7] = 6;
      bench.step({0, 1});
      EXPECT_EQ(bench.gradient(0)[7], 2);
      EXPECT_EQ(bench.gradient(1)[0], 3);
      EXPECT_EQ(bench.gradient(1)[static_cast<std::size_t>(2 * (step + 1))], 1) << "rank 2 alone sent it";
      EXPECT_EQ(bench.gradient(1)[static_cast<std::size_t>(2 * (step + 1) + 1)], 0);
    }
  });
}

TEST(Rounds, ScatterPartsAndGatherTheirSums) {
  on_groups(kRanks, [](Group& group) {
    for (const std::size_t elements : {1U, 2U, 7U, 100U}) {
      Bench bench(group, kScattering, {{"a", elements}});
      for (int step = 0; step < 2; ++step) {
        for (std::size_t i = 0; i < elements; ++i)
          bench.gradient(0)[i] = static_cast<float>(i) + 3.0F * static_cast<float>(group.rank());
        bench.step({0, 0});
        for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(bench.gradient(0)[i], static_cast<float>(i) + 3) << i;
      }
    }
  });
}

TEST(Rounds, MayFollowEachOtherWithArithmeticBetween) {
  on_groups(kRanks, [](Group& group) {
    Bench bench(group, kTwoSums, {{"a", 50}});
    std::ranges::fill(bench.gradient(0), static_cast<float>(group.rank()));
    bench.step({0, 0});
    EXPECT_EQ(bench.gradient(0)[49], 2);
  });
}

TEST(Rounds, ThatNeverEndAreAMisuseThatNamesTheCodec) {
  on_groups(2, [](Group& group) {
    Bench bench(group, kEndless, {{"a", 4}});
    test::expect_thrown<Misuse>([&] { bench.step({0, 0}); }, {"codec endless has had 1000 rounds"});
    EXPECT_EQ(bench.gradient(0)[0], 1000) << "rounds that were answered";
  });
}

TEST(Rounds, OfEachTypeAreTheirOwn) {
  on_groups(kRanks, [](Group& group) {
    Synchronizer synchronizer(group, {{"a", 5, DType::f32}, {"b", 6, DType::f64}, {"c", 7, DType::f32}},
                              {.policy = "single"});
    static_cast<float*>(synchronizer.gradient(2).data)[6] = static_cast<float>(group.rank());
    static_cast<double*>(synchronizer.gradient(1).data)[5] = group.rank();
    for (const std::size_t i : {2, 1, 0}) synchronizer.ready(i);
    synchronizer.wait();
    EXPECT_EQ(static_cast<float*>(synchronizer.gradient(2).data)[6], 1);
    EXPECT_EQ(static_cast<double*>(synchronizer.gradient(1).data)[5], 1);
    EXPECT_EQ(synchronizer.buckets().size(), 1U) << "one bucket holds both types";
  });
}

TEST(CodecState, CountsWhenAStepHasEndedAndSurvivesOtherBuckets) {
  on_groups(kRanks, [](Group& group) {
    Bench bench(group, kLate, {{"a", 4}, {"b", 4}});
    const auto fill = [&](float value) {
      for (const std::size_t i : {0, 1}) std::ranges::fill(bench.gradient(i), value);
    };
    fill(5);
    for (const std::size_t i : {0, 1}) bench.step({i, i});
    EXPECT_EQ(bench.gradient(0)[0], 0) << "nothing was kept before the first step";
    bench.flow.state.commit();
    fill(7);
    for (const std::size_t i : {0, 1}) bench.step({i, i});  // a step that is not committed: it was aborted
    fill(8);
    for (const std::size_t i : {0, 1}) bench.step({i, i});
    EXPECT_EQ(bench.gradient(1)[3], 5) << "the aborted step left nothing";
    bench.flow.state.commit();
    const SavedCodecState saved = bench.flow.state.save("late", bench.flow.gradients);
    Bench other(group, kLate, bench.flow.gradients);
    other.flow.state.restore(saved, "late", other.flow.gradients);
    EXPECT_EQ(other.flow.state.steps(), 2U);
    other.step({0, 0});
    EXPECT_EQ(other.gradient(0)[1], 8);
    EXPECT_THROW(other.flow.state.restore(saved, "pairs", other.flow.gradients), Misuse);
    for (const std::vector<Gradient>& model : std::vector<std::vector<Gradient>>{{{"a", 4}, {"b", 5}},
                                                                                 {{"a", 4}, {"b", 3}},
                                                                                 {{"a", 4}},
                                                                                 {{"a", 4}, {"b", 4}, {"c", 4}},
                                                                                 {{"a", 4}, {"c", 4}}}) {
      Bench unlike(group, kLate, model);
      EXPECT_THROW(unlike.flow.state.restore(saved, "late", unlike.flow.gradients), Misuse) << model.back().name;
    }
  });
}

TEST(CodecState, BelongsToItsGradientInAnyBucket) {
  on_groups(kRanks, [](Group& group) {
    Bench bench(group, kLate, {{"a", 4}, {"b", 4}, {"c", 4}});
    const auto fill = [&](float value) {
      for (const std::size_t i : {0, 1, 2}) std::ranges::fill(bench.gradient(i), value + static_cast<float>(i));
    };
    fill(10);
    bench.step({0, 2});
    bench.flow.state.commit();
    fill(20);
    bench.step({1, 2});
    bench.step({0, 0});
    for (const std::size_t i : {0, 1, 2}) EXPECT_EQ(bench.gradient(i)[3], 10 + static_cast<float>(i));
  });
}

TEST(CodecState, ForgetsOneStepOnRequestAndNoMore) {
  on_groups(1, [](Group& group) {
    Bench bench(group, kLate, {{"a", 4}});
    EXPECT_THROW(bench.flow.state.undo(), Misuse) << "there was no step";
    for (const float value : {5.0F, 7.0F}) {
      std::ranges::fill(bench.gradient(0), value);
      bench.step({0, 0});
      bench.flow.state.commit();
    }
    bench.flow.state.undo();
    EXPECT_EQ(bench.flow.state.steps(), 1U);
    EXPECT_THROW(bench.flow.state.undo(), Misuse) << "the step before that was overwritten";
    bench.step({0, 0});
    EXPECT_EQ(bench.gradient(0)[0], 5);
  });
}

TEST(Settings, ParametersStandInTheName) {
  EXPECT_EQ(text_of(compress::settings_of("fp16")), "fp16");
  EXPECT_THROW(std::ignore = compress::settings_of("fp16:3"), Misuse);
  EXPECT_THROW(std::ignore = compress::settings_of("fp17"), Misuse);
}

TEST(Synchronizer, RefusesInItsConstructorWhatAStepCouldNotDo) {
  on_groups(1, [](Group& group) {
    const std::vector<Gradient> model{{"w", 8}}, wide{{"w", 8, DType::f64}}, whole{{"w", 8, DType::i32}};
    EXPECT_THROW(Synchronizer(group, wide, {.coding = {.codec = "fp16"}}), Misuse);
    EXPECT_THROW(Synchronizer(group, model, {.algorithm = "no_such"}), Misuse);
    EXPECT_THROW(Synchronizer(group, whole, {.clip_norm = 1}), Misuse);
    EXPECT_THROW(Synchronizer(group, whole, {.exchange = "hierarchical"}), Misuse) << "two truncations";
    for (const std::size_t rows : {3, 7, 9})  // remainders 2, 1 and 8
      EXPECT_THROW(Synchronizer(group, {{"w", 8, DType::f32, rows}}, {}), Misuse) << rows;
    for (const std::size_t rows : {0, 1, 8}) EXPECT_NO_THROW(Synchronizer(group, {{"w", 8, DType::f32, rows}}, {}));
    EXPECT_THROW(Synchronizer(group, {{"w", 0}}, {}), Misuse);
    EXPECT_NO_THROW(Synchronizer(group, {{"w", 1}}, {}));
    std::vector<float> weights(8);
    EXPECT_THROW(Synchronizer(group, model,
                              {.exchange = "reduce_broadcast",
                               .algorithm = "ring",
                               .weights = {std::span(weights)},
                               .update = [](std::size_t, std::size_t) {}}),
                 Misuse);
  });
}

TEST(Synchronizer, ComparesWhatDecidesTheResult) {
  const auto differ = [](const auto& change, const std::string& word) {
    auto groups = Group::threads(kRanks);
    const auto failures = outcomes(kRanks, [&](int rank) {
      SynchronizerOptions options;
      if (rank == 1) change(options);
      Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], {{"w\nx", 8}}, options);
      synchronizer.ready(0);
      synchronizer.wait();
    });
    test::expect_thrown<Mismatch>(failures[1], {word});
    EXPECT_TRUE(failures[0] && failures[2]);
  };
  differ([](SynchronizerOptions& options) { options.clip_norm = 2; }, "clip_norm 2 on rank 1, clip_norm 0 on rank 0");
  differ([](SynchronizerOptions& options) { options.coding.codec = "bf16"; },
         "codec bf16 on rank 1, codec none on rank 0");
  differ([](SynchronizerOptions& options) { options.coding.seed = 3; }, "seed 3 on rank 1, seed 0 on rank 0");
}

TEST(Synchronizer, TellsTheOthersWhyItsCommunicationFailed) {
  auto groups = Group::threads(2, {.timeout = std::chrono::seconds(3)});
  const auto failures = outcomes(2, [&](int rank) {
    SynchronizerOptions options;
    const auto caller = std::this_thread::get_id();
    if (rank == 1)
      options.clock_s = [caller]() -> double {
        if (std::this_thread::get_id() != caller) throw std::runtime_error("the clock has stopped");
        return 0;
      };
    Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], {{"w", 8}}, options);
    synchronizer.ready(0);
    synchronizer.wait();
  });
  test::expect_thrown<RemoteFailure>(failures[0], {"the clock has stopped"});
}

TEST(Synchronizer, WaitForAGradientBehindOneThatIsNotReadyIsRefused) {
  on_groups(1, [](Group& group) {
    Synchronizer synchronizer(group, {{"a", 8}, {"b", 8}}, {.policy = "wfbp"});
    synchronizer.ready(0);
    EXPECT_THROW(std::ignore = synchronizer.wait(0), Misuse) << "b's bucket leaves first";
  });
}

}  // namespace
}  // namespace syncopate
