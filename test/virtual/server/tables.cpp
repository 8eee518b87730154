// Tables of a job in virtual time: the weights that workers compute with, and the fate of their updates.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "laws/history.hpp"
#include "syncopate/error.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::server {
namespace {

Setup setup_of(const std::string& consistency, std::size_t workers = 3) {
  return {.tables = {{"front", 37}, {"wide", 300'000}, {"bias", 1, true}},
          .workers = workers,
          .servers = 2,
          .placement = "uniform",
          .consistency = consistency,
          .optimizer = "sgd",
          .hyperparameters = {{"weight_decay", 0}}};
}

double uneven(std::size_t worker, Clock step) {
  return 0.01 + 0.05 * base::CounterRandom{worker, static_cast<std::uint64_t>(step)}.uniform(0);
}

// Bits of the weights.

void draw(std::size_t worker, Clock step, std::size_t table, std::span<float> gradient) {
  const base::CounterRandom random{worker, static_cast<std::uint64_t>(step), table};
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(random.uniform(i) - 0.5);
}

/// One process that averages the gradients of all workers in their order.
std::vector<std::vector<float>> trained_alone(const JobOptions& options) {
  const Setup& setup = options.setup;
  std::vector<std::vector<float>> weights;
  std::vector<WeightTensor> tensors;
  for (const TableShape& table : setup.tables) weights.emplace_back(table.elements);
  for (std::size_t i = 0; i < weights.size(); ++i)
    tensors.push_back({setup.tables[i].name, Buffer(std::span(weights[i])), setup.tables[i].spared});
  Optimizer optimizer(tensors, {.rule = setup.optimizer, .hyperparameters = setup.hyperparameters});
  for (Clock step = 0; step < options.steps; ++step)
    for (std::size_t table = 0; table < weights.size(); ++table) {
      std::vector<float> sum(weights[table].size()), gradient(sum.size());
      for (std::size_t worker = 0; worker < setup.workers; ++worker) {
        options.gradient(worker, step, table, gradient);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
      }
      for (float& value : sum) value /= static_cast<float>(setup.workers);
      optimizer.update(table, sum, {options.rate, static_cast<std::uint64_t>(step) + 1});
    }
  return weights;
}

class Lockstep : public testing::TestWithParam<std::tuple<const char*, const char*, double>> {};

TEST_P(Lockstep, EndsInTheBitsOfOneProcess) {
  const auto [optimizer, placement, break_every_s] = GetParam();
  JobOptions options{.setup = setup_of("bsp"), .steps = 12, .gradient = draw, .compute_s = uneven};
  options.setup.optimizer = optimizer;
  options.setup.hyperparameters.clear();
  options.setup.placement = placement;
  options.break_every_s = break_every_s;
  options.rate = 0.1;
  Job job(options);
  job.run();
  const auto expected = trained_alone(options);
  for (std::size_t worker = 0; worker < 3; ++worker) {
    ASSERT_TRUE(job.has_finished(worker));
    EXPECT_EQ(job.weights(worker), expected) << worker;
  }
  EXPECT_EQ(job.breaks > 0, break_every_s > 0);
}

INSTANTIATE_TEST_SUITE_P(Tables, Lockstep,
                         testing::Combine(testing::Values("sgd", "momentum", "adamw"),
                                          testing::Values("uniform", "lpt"), testing::Values(0.0, 0.02)));

/// Blocks of a table on one server step together, by the norms of the whole table.
INSTANTIATE_TEST_SUITE_P(LayerWise, Lockstep,
                         testing::Combine(testing::Values("lars", "lamb"), testing::Values("lpt", "round_robin"),
                                          testing::Values(0.0, 0.02)));

TEST(LayerWise, RefusesAPlacementThatDividesATableAmongServers) {
  server::Setup setup = setup_of("bsp");
  setup.optimizer = "lars";
  setup.hyperparameters.clear();
  try {
    static_cast<void>(blocks_of(setup));
    FAIL() << "it was accepted";
  } catch (const Misuse& misuse) {
    EXPECT_STREQ(misuse.what(),
                 "optimizer lars under consistency bsp: placement uniform divides tables among servers, and the trust "
                 "ratio needs the norms of whole ones; allowed: placement lpt, round_robin");
  }
  setup.consistency = "ssp:3";
  EXPECT_NO_THROW(static_cast<void>(blocks_of(setup))) << "each worker has its own optimizer";
  setup.consistency = "bsp";
  setup.servers = 1;
  EXPECT_NO_THROW(static_cast<void>(blocks_of(setup))) << "one server has all";
}

// Counts: weight i belongs to worker i mod N, whose every step adds exactly 1 to it.

void count(std::size_t worker, std::size_t workers, std::span<float> gradient) {
  for (std::size_t i = worker; i < gradient.size(); i += workers) gradient[i] = -static_cast<float>(workers);
}

class Counted : public testing::TestWithParam<std::tuple<const char*, std::uint64_t>> {
 protected:
  /// A job that counts, with four workers: a power of two, so that every sum is exact.
  JobOptions options(double break_every_s) {
    const auto [consistency, seed] = GetParam();
    JobOptions options{.setup = setup_of(consistency, 4), .steps = 40, .seed = seed};
    options.setup.tables[1].elements = 3000;
    options.compute_s = uneven;
    options.break_every_s = break_every_s;
    options.reads = [this](std::size_t worker, Clock step, std::span<const std::vector<float>> weights) {
      seen_.push_back(laws::seen_in(weights, 4));
      seen_.back().worker = worker;
      seen_.back().step = step;
    };
    return options;
  }

  std::vector<laws::Seen> seen_;
};

TEST_P(Counted, EveryUpdateIsAppliedOnceWhateverIsSentAgain) {
  Job job(options(0.03));
  job.run();
  EXPECT_EQ(job.broken, std::vector<std::string>{});
  EXPECT_GT(job.breaks, 10U);
  for (std::size_t worker = 0; worker < 4; ++worker) {
    ASSERT_TRUE(job.has_finished(worker)) << "worker " << worker << " waits at step " << job.clock(worker);
    for (const auto& table : job.weights(worker))
      EXPECT_TRUE(std::ranges::all_of(table, [](float weight) { return weight == 40; }));
  }
}

TEST_P(Counted, AStepComputesWithWhatItsModelPromisesAndAllItsOwn) {
  const JobOptions chosen = options(0.2);
  Job job(chosen);
  job.run();
  const auto staleness = rule_of(chosen.setup.consistency).staleness;
  EXPECT_EQ(seen_.size(), 4 * 40U);
  for (const laws::Seen& seen : seen_) {
    EXPECT_EQ(seen.least[seen.worker], seen.step);
    EXPECT_GE(std::ranges::min(seen.least), staleness ? seen.step - *staleness : 0);
  }
}

TEST_P(Counted, AWorkerThatDiesIsNotWaitedFor) {
  JobOptions chosen = options(0);
  chosen.accidents[1] = {.at_s = 0.7};
  Job job(chosen);
  job.run();
  for (const std::size_t worker : {0, 2, 3}) {
    ASSERT_TRUE(job.has_finished(worker)) << "worker " << worker << " waits at step " << job.clock(worker);
    EXPECT_EQ(job.weights(worker), job.weights(0));
    EXPECT_EQ(job.clock(worker), 40);
  }
  EXPECT_LT(job.clock(1), 40);
}

std::string name_of_case(const auto& info) {
  std::string name = std::string(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tables, Counted,
                         testing::Combine(testing::Values("bsp", "ssp:0", "ssp:3", "adaptive:0.1,5", "tap"),
                                          testing::Values(1, 2, 3)),
                         [](const auto& tested) { return name_of_case(tested); });

// Codecs.

class Coded : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

/// Under `ssp:3` a worker may push in every fourth step only, and `random_k:0.1` omits nothing of ten packets together.
TEST_P(Coded, WhatPacketsLeaveOutArrivesOnceTheGradientsRest) {
  const auto [consistency, codec] = GetParam();
  JobOptions options{.setup = setup_of(consistency, 4), .steps = 120, .compute_s = uneven};
  options.setup.coding.codec = codec;
  options.setup.coding.dense_below = 100;
  options.setup.tables[1].elements = 3000;
  options.break_every_s = 0.05;
  options.gradient = [](std::size_t worker, Clock step, std::size_t, std::span<float> gradient) {
    if (step < 20) count(worker, 4, gradient);
  };
  Job job(options);
  job.run();
  for (std::size_t worker = 0; worker < 4; ++worker) {
    ASSERT_TRUE(job.has_finished(worker)) << "worker " << worker << " waits at step " << job.clock(worker);
    for (const auto& table : job.weights(worker))
      EXPECT_TRUE(std::ranges::all_of(table, [](float weight) { return weight == 20; }));
  }
}

/// Values that a packet omits stay in the difference between the server's state and the shown state.
class Answers : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Answers, LeadAllWorkersToTheSameWeightsAndInTheEndToTheServers) {
  const auto [consistency, codec] = GetParam();
  JobOptions options{.setup = setup_of(consistency, 4), .steps = 30, .compute_s = uneven};
  options.setup.answers = codec;
  options.setup.coding.dense_below = 100;
  options.setup.tables[1].elements = 3000;
  options.break_every_s = 0.05;
  std::map<Clock, std::vector<std::vector<float>>> seen;
  std::size_t different = 0, behind = 0;
  options.reads = [&, lockstep = std::string(consistency) == "bsp"](std::size_t, Clock step, auto weights) {
    const auto [first, is_new] = seen.emplace(step, std::vector(weights.begin(), weights.end()));
    if (lockstep && !is_new && !std::ranges::equal(first->second, weights)) ++different;
    behind += std::ranges::count_if(weights[1], [&](float weight) { return weight < static_cast<float>(step); });
  };
  Job job(options);
  job.run();
  EXPECT_EQ(different, 0U);
  EXPECT_GT(behind, 0U) << "no value was omitted";
  for (std::size_t worker = 0; worker < 4; ++worker) {
    ASSERT_TRUE(job.has_finished(worker)) << "worker " << worker << " waits at step " << job.clock(worker);
    for (const auto& table : job.weights(worker))
      EXPECT_TRUE(std::ranges::all_of(table, [](float weight) { return weight == 30; }));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Answers,
                         testing::Combine(testing::Values("bsp", "ssp:3", "tap"),
                                          testing::Values("topk:0.1", "mstopk:0.2", "dgc:0.1", "random_k:0.2")));

INSTANTIATE_TEST_SUITE_P(Tables, Coded,
                         testing::Combine(testing::Values("bsp", "ssp:3", "tap"),
                                          testing::Values("fp16", "topk:0.1", "mstopk:0.1", "dgc:0.1", "random_k:0.1",
                                                          "importance:auto:0.1,1,20")));

TEST(Codecs, ThatAServerCannotDecodeAreRefusedByName) {
  compress::Codec shared = *compress::settings_of("importance").codec;
  shared.name = "shared";
  shared.coder_alone = nullptr;
  shared.conversation = "all ranks select";
  server::Setup setup = setup_of("bsp");
  setup.catalogue = Catalogue().with(shared);
  setup.coding.codec = "shared";
  try {
    static_cast<void>(blocks_of(setup));
    ADD_FAILURE() << "is not refused";
  } catch (const Misuse& misuse) {
    const std::string text = misuse.what();
    EXPECT_TRUE(
        text.starts_with("codec shared with a parameter server: its packets cannot be decoded alone, because all "
                         "ranks select; allowed: "))
        << text;
  }
}

TEST(StaleSynchronous, WorkersOfEqualSpeedPushOnceInThreeSteps) {
  JobOptions options{.setup = setup_of("ssp:2", 4), .steps = 60};
  options.gradient = [](auto&&...) {};
  options.compute_s = [](auto&&...) { return 1.0; };
  Job job(options);
  job.run();
  const std::size_t blocks = blocks_of(options.setup).size();
  EXPECT_EQ(job.pushes, 4 * blocks * 60 / 3);
}

}  // namespace
}  // namespace syncopate::server
