// Servers and workers over real streams: what they end with, and what is said when one of them is lost.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/random.hpp"
#include "syncopate/error.hpp"
#include "syncopate/server.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

/// Servers of one job on this host, under names that nobody else takes.
class Servers final {
 public:
  explicit Servers(std::size_t count, ServerOptions options = {}) {
    static int jobs = 0;
    const std::string job = "@syncopate-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    for (std::size_t index = 0; index < count; ++index) {
      options.index = index;
      options.addresses = {job + "-" + std::to_string(index)};
      options.log.level = LogLevel::error;
      options_.push_back(options);
      servers_.push_back(Server::start(options));
    }
  }
  [[nodiscard]] std::vector<std::string> addresses() const {
    std::vector<std::string> addresses;
    for (const ServerOptions& options : options_) addresses.push_back(options.addresses.front());
    return addresses;
  }
  void stop(std::size_t index) { servers_[index].reset(); }
  void start(std::size_t index) { servers_[index] = Server::start(options_[index]); }
  Server& operator[](std::size_t index) { return *servers_[index]; }

 private:
  std::vector<ServerOptions> options_;
  std::vector<std::unique_ptr<Server>> servers_;
};

/// A worker with two tables, one of several blocks, that takes part in `steps` steps; gradients are drawn.
class Program final {
 public:
  Program(const Servers& servers, WorkerOptions options) : options_(std::move(options)) {
    options_.servers = servers.addresses();
    options_.log.level = LogLevel::error;
    for (std::size_t i = 0; i < weights_[1].size(); ++i) weights_[1][i] = static_cast<float>(i % 7);
  }

  void connect() {
    worker_ = TableWorker::connect(options_);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(worker_->create_table("table " + std::to_string(i), Buffer(std::span(weights_[i]))), i);
  }
  void start() {
    connect();
    worker_->start();
  }
  void step() {
    for (std::size_t i = 0; i < 2; ++i) worker_->sync(i);
    const auto step = static_cast<std::uint64_t>(worker_->steps());
    for (std::size_t table = 2; table-- > 0;) {
      std::vector<float> gradient(weights_[table].size());
      const base::CounterRandom random{options_.worker, step, table};
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(random.uniform(i) - 0.5);
      worker_->update(table, Buffer(std::span(gradient)), 0.1);
    }
    worker_->clock(0.1);
  }
  void run(std::int64_t steps) {
    start();
    while (worker_->steps() < steps) step();
    worker_->finish();
  }
  [[nodiscard]] const std::vector<float>& weights(std::size_t table) const { return weights_[table]; }
  TableWorker& worker() { return *worker_; }
  void leave() { worker_.reset(); }

 private:
  WorkerOptions options_;
  std::vector<float> weights_[2] = {std::vector<float>(37), std::vector<float>(700'000)};
  std::unique_ptr<TableWorker> worker_;
};

std::vector<std::unique_ptr<Program>> programs(const Servers& servers, const WorkerOptions& options) {
  std::vector<std::unique_ptr<Program>> made;
  for (std::size_t worker = 0; worker < options.workers; ++worker) {
    WorkerOptions own = options;
    own.worker = worker;
    made.push_back(std::make_unique<Program>(servers, own));
  }
  return made;
}

void run_all(std::span<const std::unique_ptr<Program>> programs, std::int64_t steps) {
  std::vector<std::jthread> threads;
  for (const auto& program : programs) threads.emplace_back([&] { program->run(steps); });
}

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

INSTANTIATE_TEST_SUITE_P(Servers, Models, testing::Values("bsp", "ssp:3", "adaptive:0.01,5", "tap"),
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
  Servers servers(2, {.addresses = {}, .patience = 200ms});
  const WorkerOptions options{.servers = {}, .workers = 2};
  auto all = programs(servers, options);
  all[0]->connect();
  std::jthread other([&] { all[1]->run(400); });
  all[0]->worker().start();
  for (int step = 0; step < 3; ++step) all[0]->step();
  all[0]->leave();
  auto again = programs(servers, options);
  again[0]->run(400);
  other.join();
  EXPECT_EQ(again[0]->weights(1), all[1]->weights(1));
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
    EXPECT_NE(std::string(error.what()).find("the consistency is bsp there and ssp:3 here"), std::string::npos)
        << error.what();
  }
  servers.stop(0);
}

}  // namespace
}  // namespace syncopate
