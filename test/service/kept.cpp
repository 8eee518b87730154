// The state that workers gather of a job and other jobs begin with: it has the bits of an uninterrupted job.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "service/job.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

using Programs = std::vector<std::unique_ptr<Program>>;

void each(const Programs& programs, const std::function<void(std::size_t, Program&)>& part) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < programs.size(); ++i) threads.emplace_back([&, i] { part(i, *programs[i]); });
}

/// State of each worker between two steps.
struct Cut {
  std::vector<KeptTables> tables;
  std::vector<KeptByCodec> codec;
};

Cut gathered_at(std::int64_t step, const Programs& programs) {
  Cut cut{std::vector<KeptTables>(programs.size()), std::vector<KeptByCodec>(programs.size())};
  each(programs, [&](std::size_t i, Program& program) {
    program.start();
    while (program.worker().steps() < step) program.step();
    for (std::size_t table = 0; table < 2; ++table) program.worker().sync(table);
    if (i == 0)
      cut.tables[i] = program.worker().gather();
    else
      program.worker().flush();
    cut.codec[i] = program.worker().kept_by_codec();
    program.worker().finish();
  });
  return cut;
}

void go_on_with(const Cut& cut, const Programs& programs, std::int64_t steps) {
  each(programs, [&](std::size_t i, Program& program) {
    program.start(cut.tables[0]);
    if (i < cut.codec.size()) program.worker().restore(cut.codec[i]);
    program.go_on(steps);
  });
}

std::vector<float> end_of(const WorkerOptions& options, std::int64_t steps) {
  Servers servers(2);
  const auto all = programs(servers, options);
  run_all(all, steps);
  return all[0]->weights(1);
}

struct Way {
  const char *optimizer, *codec, *feedback;
  std::size_t servers;
  const char* placement;
};

class Resumed : public testing::TestWithParam<Way> {};

TEST_P(Resumed, InLockstepHasTheBitsOfAnUninterruptedJob) {
  const Way way = GetParam();
  WorkerOptions options{.servers = {},
                        .workers = 3,
                        .coding = {.codec = way.codec, .feedback = feedback_named(way.feedback), .dense_below = 1},
                        .optimizer = way.optimizer};
  const std::vector<float> expected = end_of(options, 9);
  Servers first(2), second(way.servers);
  const Cut cut = gathered_at(4, programs(first, options));
  EXPECT_EQ(cut.tables[0].step, 4);
  options.placement = way.placement;
  const auto again = programs(second, options);
  go_on_with(cut, again, 9);
  for (const auto& program : again) EXPECT_EQ(program->weights(1), expected);
}

INSTANTIATE_TEST_SUITE_P(Servers, Resumed,
                         testing::Values(Way{"adamw", "none", "auto", 2, "uniform"},
                                         Way{"adamw", "none", "auto", 3, "lpt"},
                                         Way{"momentum", "none", "auto", 1, "round_robin"},
                                         Way{"momentum", "threshold:0.4", "auto", 3, "uniform"},
                                         Way{"momentum", "topk:0.01", "auto", 2, "uniform"},
                                         Way{"momentum", "qsgd:4", "auto", 2, "uniform"}),
                         [](const auto& tested) { return std::to_string(tested.index); });

TEST(Gathering, ChangesNoBitOfWhatFollowsNorWhatIsLeftOutOfAnswers) {
  const WorkerOptions options{
      .servers = {}, .workers = 2, .coding = {.dense_below = 1}, .answers = "topk:0.01", .optimizer = "momentum"};
  const std::vector<float> expected = end_of(options, 6);
  Servers servers(2);
  const auto all = programs(servers, options);
  each(all, [&](std::size_t i, Program& program) {
    program.start();
    while (program.worker().steps() < 6) {
      program.step();
      for (std::size_t table = 0; table < 2; ++table) program.worker().sync(table);
      if (i == 0) static_cast<void>(program.worker().gather());
    }
    program.worker().finish();
  });
  EXPECT_EQ(all[0]->weights(1), expected);
}

class Stale : public testing::TestWithParam<const char*> {};

TEST_P(Stale, GathersEverybodysUpdatesOfAsManySteps) {
  const WorkerOptions options{.servers = {}, .workers = 3, .consistency = GetParam(), .optimizer = "adamw"};
  Servers first(2), second(3);
  const auto all = programs(first, options);
  const Cut cut = gathered_at(7, all);
  const auto last = all[0]->weights(1);
  const std::vector<float>& weights = cut.tables[0].weights;
  EXPECT_EQ(std::vector<float>(weights.end() - static_cast<std::ptrdiff_t>(last.size()), weights.end()), last);
  EXPECT_EQ(cut.tables[0].state.size(), 2U);
  EXPECT_NE(cut.tables[0].state[1].second, std::vector<float>(weights.size()));
  WorkerOptions fewer = options;
  fewer.workers = 2;
  fewer.placement = "lpt";
  const auto again = programs(second, fewer);
  go_on_with({cut.tables, {}}, again, 10);
  EXPECT_EQ(again[0]->worker().steps(), 10);
  EXPECT_EQ(again[0]->weights(1), again[1]->weights(1));
}

INSTANTIATE_TEST_SUITE_P(Servers, Stale, testing::Values("ssp:3", "adaptive:0.01,5", "tap"),
                         [](const auto& tested) { return std::to_string(tested.index); });

TEST(AResumedJob, RefusesAWorkerThatBeginsElsewhereAndAnotherOptimizersState) {
  Servers servers(1);
  const WorkerOptions options{.servers = {}, .workers = 1, .optimizer = "momentum"};
  Program first(servers, options);
  KeptTables earlier{.step = 40};
  first.start(earlier);
  Program other(servers, options);
  try {
    other.start();
    FAIL() << "it was accepted";
  } catch (const Mismatch& error) {
    EXPECT_NE(std::string(error.what()).find("is 40 there and 0 here"), std::string::npos) << error.what();
  }
  Program third(servers, options);
  earlier.optimizer = "adamw";
  earlier.state = {{"mean", std::vector<float>(700'037)}, {"square", std::vector<float>(700'037)}};
  EXPECT_THROW(third.start(earlier), Misuse);
  earlier.optimizer = "momentum";
  earlier.state.pop_back();
  EXPECT_THROW(third.start(earlier), Misuse);
}

}  // namespace
}  // namespace syncopate
