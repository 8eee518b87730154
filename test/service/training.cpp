// Servers and workers over real streams: their final weights, and their errors when one of them is lost.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "kernel/cast.hpp"
#include "sanitized.hpp"
#include "service/job.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

class Models : public testing::TestWithParam<const char*> {};

TEST_P(Models, EndWithTheSameWeightsOnEveryWorker) {
  Servers servers(2);
  const auto all = programs(servers, {.servers = {}, .workers = 3, .consistency = GetParam()});
  run_all(all, 10);
  for (const auto& program : all)
    for (std::size_t table = 0; table < 2; ++table) EXPECT_EQ(program->weights(table), all[0]->weights(table));
  EXPECT_NE(all[0]->weights(0), std::vector<float>(37));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(servers[i].wait_for_end(20s));
    EXPECT_EQ(servers[i].status().finished, 3U);
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, Models, testing::Values("bsp", "ssp:3", "dssp:1,4", "adaptive:0.01,5", "tap"),
                         [](const auto& tested) { return std::to_string(tested.index); });

TEST(Lockstep, EndsInTheSameBitsFromRunToRun) {
  std::vector<float> weights[2];
  for (auto& run : weights) {
    Servers servers(2);
    const auto all = programs(servers, {.servers = {}, .workers = 3, .placement = "lpt"});
    run_all(all, 5);
    run = all[0]->weights(1);
  }
  EXPECT_EQ(weights[0], weights[1]);
}

/// One worker that pulls weights of this type to 3 by gradients of that type; returns their bits.
std::vector<std::uint16_t> pulled(DType weights, DType gradients, const std::string& consistency) {
  const auto halves_of = [](float value, DType dtype) {
    std::uint16_t half = 0;
    kernel::cast({DType::f32, dtype}, reinterpret_cast<std::byte*>(&value), reinterpret_cast<std::byte*>(&half), 1);
    return half;
  };
  Servers servers(2);
  std::vector<std::uint16_t> memory(1000, halves_of(1, weights));
  const auto worker = TableWorker::connect({.servers = servers.addresses(),
                                            .consistency = consistency,
                                            .optimizer = "sgd",
                                            .hyperparameters = {{"weight_decay", 0}}});
  worker->create_table("table", {memory.data(), memory.size(), weights});
  worker->start();
  for (int step = 0; step < 8; ++step) {
    worker->sync(0);
    EXPECT_EQ(memory.front(), halves_of(1 + 0.25F * static_cast<float>(step), weights)) << "its own updates";
    std::vector<std::uint16_t> gradient(memory.size(), halves_of(-1, gradients));
    worker->update(0, {gradient.data(), gradient.size(), gradients}, 0.25);
    EXPECT_EQ(gradient, std::vector<std::uint16_t>(memory.size()));
    worker->clock(0.25);
  }
  EXPECT_EQ(worker->gather().weights, std::vector<float>(memory.size(), 3));
  worker->finish();
  EXPECT_EQ(memory, std::vector<std::uint16_t>(memory.size(), halves_of(3, weights)));
  return memory;
}

TEST(AWorker, HasWeightsAndGradientsOf16Bits) {
  for (const char* consistency : {"bsp", "ssp:2"}) {
    EXPECT_EQ(pulled(DType::f16, DType::f16, consistency).front(), 0x4200);
    EXPECT_EQ(pulled(DType::bf16, DType::bf16, consistency).front(), 0x4040);
    EXPECT_EQ(pulled(DType::f16, DType::bf16, consistency).front(), 0x4200);
  }
}

TEST(AWorker, OfTablesOf16BitsResumesFromTheServersWeights) {
  Servers servers(1);
  std::vector<std::uint16_t> memory(10, 0x3f80);  // 1 in bf16
  const auto begun = [&](const std::vector<std::string>& addresses, KeptTables earlier) {
    auto worker =
        TableWorker::connect({.servers = addresses, .optimizer = "sgd", .hyperparameters = {{"weight_decay", 0}}});
    worker->create_table("table", {memory.data(), memory.size(), DType::bf16});
    worker->start(std::move(earlier));
    return worker;
  };
  const auto first = begun(servers.addresses(), {});
  first->sync(0);
  std::vector<float> gradient(memory.size(), -0x1p-10F);  // less than a unit of bf16
  first->update(0, Buffer(std::span(gradient)), 1);
  first->clock(1);
  const KeptTables kept = first->gather();
  EXPECT_EQ(kept.weights, std::vector<float>(memory.size(), 1 + 0x1p-10F));
  first->finish();
  EXPECT_EQ(memory, std::vector<std::uint16_t>(memory.size(), 0x3f80));
  Servers others(1);
  EXPECT_EQ(begun(others.addresses(), kept)->gather().weights, kept.weights);
  KeptTables shorter = kept;
  shorter.weights.pop_back();
  Servers more(1);
  expect_thrown<Misuse>([&] { return begun(more.addresses(), shorter); }, {"9 weights", "10"});
}

TEST(AWorker, RefusesWeightsAndGradientsOfOtherTypes) {
  Servers servers(1);
  std::vector<double> doubles(3);
  std::vector<float> floats(3);
  const auto begun = [&](Buffer weights) {
    auto worker = TableWorker::connect({.servers = servers.addresses()});
    worker->create_table("table", weights);
    worker->start();
    return worker;
  };
  expect_thrown<Misuse>([&] { return begun(std::span(doubles)); }, {"table 'table'", "f64", "f32, f16, bf16"});
  const auto worker = begun(std::span(floats));
  expect_thrown<Misuse>(
      [&] {
        worker->update(0, std::span(doubles), 1);
        return 0;
      },
      {"a gradient of table 'table'", "f64"});
}

TEST(Lockstep, EndsInTheSameBitsInEveryFlow) {
  std::map<std::string, std::vector<float>> weights;
  for (const char* flow : {"traditional", "wait_free", "front_first"}) {
    Servers servers(2);
    const auto all = programs(servers, {.servers = {}, .workers = 3, .flow = flow});
    run_all(all, 5);
    weights[flow] = all[0]->weights(1);
  }
  EXPECT_EQ(weights["traditional"], weights["front_first"]);
  EXPECT_EQ(weights["wait_free"], weights["front_first"]);
}

TEST(AFlow, ThatDoesNotExistIsRefusedWithThoseThatDo) {
  try {
    static_cast<void>(TableWorker::connect({.servers = {"@no-server"}, .flow = "back_first"}));
    FAIL() << "it was accepted";
  } catch (const Misuse& error) {
    EXPECT_NE(std::string(error.what()).find("traditional, wait_free, front_first"), std::string::npos) << error.what();
  }
}

TEST(AWorker, ThatNeverComesIsGivenUpAndTheOthersGoOn) {
  Servers servers(2, {.addresses = {}, .patience = 300ms});
  auto all = programs(servers, {.servers = {}, .workers = 3});
  all.pop_back();
  run_all(all, 5);
  EXPECT_EQ(all[0]->weights(1), all[1]->weights(1));
}

TEST(AWorker, ThatLeavesWithoutAWordIsWaitedForUntilPatienceEnds) {
  Servers servers(2, {.addresses = {}, .patience = 300ms});
  auto all = programs(servers, {.servers = {}, .workers = 2});
  std::jthread other([&] { all[1]->run(12); });
  all[0]->start();
  for (int step = 0; step < 3; ++step) all[0]->step();
  all[0]->leave();
  other.join();
  EXPECT_EQ(all[1]->worker().steps(), 12);
}

TEST(AWorker, ThatTakesThePlaceOfOneThatDiedGoesOnWhereTheOthersAre) {
  constexpr std::int64_t kSteps = test::kSanitized ? 40 : 400;
  Servers servers(2, {.addresses = {}, .patience = 200ms});
  const WorkerOptions options{.servers = {}, .workers = 2};
  auto all = programs(servers, options);
  all[0]->connect();
  std::jthread other([&] { all[1]->run(kSteps); });
  all[0]->worker().start();
  for (int step = 0; step < 3; ++step) all[0]->step();
  all[0]->leave();
  auto again = programs(servers, options);
  again[0]->run(kSteps);
  other.join();
  EXPECT_EQ(again[0]->weights(1), all[1]->weights(1));
}

TEST(AWorker, ThatHasFinishedDoesNothingMore) {
  const Servers servers(1);
  const auto worker = TableWorker::connect(
      {.servers = servers.addresses(), .optimizer = "sgd", .hyperparameters = {{"weight_decay", 0}}});
  worker->create_rows({.name = "rows", .width = 1});
  worker->start();
  worker->finish();
  const std::uint64_t id = 0;
  float row = 1;
  const auto ids = std::span(&id, 1);
  const auto values = std::span(&row, 1);
  EXPECT_THROW(worker->push_rows(0, ids, values, 1), Misuse);
  EXPECT_THROW(worker->pull_rows(0, ids, values), Misuse);
  EXPECT_THROW(worker->clock(1), Misuse);
}

TEST(AWorker, OfAJobWithoutWorkersIsRefused) {
  try {
    static_cast<void>(TableWorker::connect({.servers = {"@no-server"}, .workers = 0}));
    FAIL() << "it was accepted";
  } catch (const Misuse& error) {
    EXPECT_STREQ(error.what(), "a job of 0 workers; allowed: 1 to 4096");
  }
}

TEST(AServer, ThatStaysAwayIsNamedWithItsAddress) {
  Servers servers(2);
  auto all = programs(servers, {.servers = {}, .workers = 1, .timeout = 1s});
  all[0]->start();
  all[0]->step();
  servers.stop(1);
  try {
    for (;;) all[0]->step();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("server 1 at @syncopate-test-"), std::string::npos) << error.what();
  }
}

TEST(Workers, WithAnotherIdeaOfTheJobAreToldTheDifference) {
  Servers servers(1);
  auto all = programs(servers, {.servers = {}, .workers = 2, .timeout = 1s});
  Program other(servers, {.servers = {}, .worker = 1, .workers = 2, .consistency = "ssp:3"});
  std::jthread first([&] {
    try {
      all[0]->run(1);
    } catch (const Error&) {  // its partner never comes
    }
  });
  while (servers[0].status().workers == 0) std::this_thread::yield();
  try {
    other.start();
    FAIL() << "it was accepted";
  } catch (const Mismatch& error) {
    EXPECT_NE(std::string(error.what()).find("consistency is bsp there and ssp:3 here"), std::string::npos)
        << error.what();
  }
  servers.stop(0);
}

TEST(FirstWeights, ThatWorker0DoesNotSendAreATimeoutThatNamesIt) {
  Servers servers(1);
  Program alone(servers, {.worker = 1, .workers = 2, .timeout = 3s});
  try {
    alone.start();
    ADD_FAILURE() << "it has weights";
  } catch (const Timeout& error) {
    EXPECT_NE(std::string(error.what()).find("worker 0 sends the first weights"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace syncopate
