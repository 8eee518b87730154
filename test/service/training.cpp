// Servers and workers over real streams: their final weights, and their errors when one of them is lost.
#include <gtest/gtest.h>

#include <thread>

#include "sanitized.hpp"
#include "service/job.hpp"
#include "syncopate/error.hpp"

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
  const auto worker = TableWorker::connect({.servers = servers.addresses(), .optimizer = "sgd"});
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
