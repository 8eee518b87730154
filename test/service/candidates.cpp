// Candidates: a process that claims to be a worker of a job does not harm the real one.
#include <gtest/gtest.h>

#include <functional>

#include "service/child.hpp"
#include "service/job.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

/// The Mismatch that a process with those options receives.
std::string mismatch_of(const Servers& servers, const WorkerOptions& options) {
  Program program(servers, options);
  try {
    program.start();
  } catch (const Mismatch& error) {
    return error.what();
  }
  return "it was accepted";
}

/// Runs a job of two workers; calls `meanwhile` between two steps. The workers then end in order.
void run_beside(const WorkerOptions& options, const std::function<void(const Servers&)>& meanwhile) {
  Servers servers(2);
  const auto all = programs(servers, options);
  on_each(all, [](Program& program) {
    program.start();
    program.step();
  });
  meanwhile(servers);
  on_each(all, [](Program& program) { program.go_on(5); });
  for (const auto& program : all) {
    EXPECT_EQ(program->worker().statistics().reconnections, 0U) << "its stream was ended";
    EXPECT_EQ(program->weights(1), all[0]->weights(1));
  }
}

struct Misfit {
  const char* name;
  void (*make)(WorkerOptions& options);
  const char* told;
};

class Candidate : public testing::TestWithParam<Misfit> {};

TEST_P(Candidate, ThatDoesNotFitTheJobIsRefusedAndTheHealthyWorkerOfItsNumberGoesOn) {
  const WorkerOptions options{.servers = {}, .workers = 2};
  run_beside(options, [&](const Servers& servers) {
    WorkerOptions other = options;
    GetParam().make(other);
    const std::string told = mismatch_of(servers, other);
    EXPECT_NE(told.find(GetParam().told), std::string::npos) << told;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Of, Candidate,
    testing::Values(Misfit{"rules", [](WorkerOptions& options) { options.optimizer = "sgd"; },
                           "optimizer is momentum there and sgd here"},
                    Misfit{"consistency", [](WorkerOptions& options) { options.consistency = "tap"; }, "tap"},
                    Misfit{"workers", [](WorkerOptions& options) { options.workers = 3; }, "workers is 2 there and 3"}),
    [](const auto& misfit) { return misfit.param.name; });

TEST(Candidates, WithTheNumberOfAWorkerThatIsAliveAreRefusedAndItGoesOn) {
  const WorkerOptions options{.servers = {}, .workers = 2};
  run_beside(options, [&](const Servers& servers) {
    const std::string told = mismatch_of(servers, options);
    EXPECT_NE(told.find("worker 0 is another live process"), std::string::npos) << told;
  });
}

TEST(Candidates, WithANumberBeyondTheJobDoNotKeepAServerFromItsEnd) {
  Servers servers(2);
  Program worker(servers, {.servers = {}, .workers = 1}), silent(servers, {.servers = {}, .worker = 5, .workers = 6});
  silent.connect();
  worker.start();
  const std::string told = mismatch_of(servers, {.servers = {}, .worker = 7, .workers = 8});
  EXPECT_NE(told.find("workers is 1 there and 8"), std::string::npos) << told;
  worker.go_on(2);
  for (const std::size_t server : {0, 1}) EXPECT_TRUE(servers[server].wait_for_end(20s)) << server;
}

TEST(Candidates, TakeThePlaceOfAWorkerThatIsLost) {
  Servers servers(2);
  const WorkerOptions options{.servers = {}, .workers = 1};
  Program first(servers, options), second(servers, options);
  first.start();
  first.step();
  std::jthread candidate([&] { second.run(4); });
  first.leave();
  candidate.join();
  EXPECT_EQ(second.worker().steps(), 4);
}

TEST(Candidates, ThatOnlyConnectDoNotStopTheOthersBeyondThePatience) {
  ServerOptions server;
  server.patience = 300ms;
  Servers servers(1, server);
  WorkerOptions options{.servers = {}, .workers = 2};
  const auto all = programs(servers, options);
  {
    std::vector<std::jthread> threads;
    for (const auto& program : all)
      threads.emplace_back([&] {
        program->start();
        program->step();
      });
  }
  all[1]->leave();
  options.worker = 1;
  Program replacement(servers, options);
  replacement.connect();
  all[0]->go_on(4);
  EXPECT_EQ(all[0]->worker().steps(), 4);
}

TEST(Candidates, OfAWorkerThatHasFinishedAreGivenUpAsEveryOther) {
  ServerOptions server;
  server.patience = 300ms;
  Servers servers(1, server);
  WorkerOptions options{.servers = {}, .workers = 2, .consistency = "ssp:1"};
  const auto all = programs(servers, options);
  {
    std::vector<std::jthread> threads;
    for (const auto& program : all) threads.emplace_back([&] { program->start(); });
  }
  all[1]->go_on(0);
  all[0]->step();
  options.worker = 1;
  Program again(servers, options);
  again.start();
  EXPECT_FALSE(servers[0].wait_for_end(0ms));
  again.leave();
  all[0]->go_on(6);
  EXPECT_TRUE(servers[0].wait_for_end(1h)) << "worker 1 was given up";
}

/// A worker of one table of rows.
std::unique_ptr<TableWorker> row_worker(const std::vector<std::string>& servers) {
  WorkerOptions options{.servers = servers, .consistency = "tap"};
  options.access.silence = 1s;
  options.log.level = LogLevel::off;
  auto worker = TableWorker::connect(options);
  worker->create_rows({.name = "rows", .width = 1, .scale = 0});
  worker->start();
  return worker;
}

constexpr char kAddress[] = "SYNCOPATE_TEST_ADDRESS";
constexpr int kRefused = 7;

/// Not a test: the body of a Child, which pushes rows until it is refused.
TEST(Candidates, DISABLED_PushRows) {
  const auto worker = row_worker({std::getenv(kAddress)});
  try {
    for (;;) {
      worker->push_rows(0, std::vector<std::uint64_t>{1}, std::vector<float>{-1}, 1);
      worker->flush();
    }
  } catch (const Mismatch& error) {
    const bool is_right = std::string(error.what()).find("another one has taken its place") != std::string::npos;
    ::_exit(is_right ? kRefused : 1);
  }
}

TEST(Candidates, OfAStoppedWorkerKeepItsPlaceThoughTheyEndBeforeItContinues) {
  Servers servers(1);
  Child first("Candidates.DISABLED_PushRows", {{kAddress, servers.addresses()[0]}});
  while (servers[0].status().kept_bytes == 0) std::this_thread::yield();
  first.stop();
  auto second = row_worker(servers.addresses());
  for (int push = 0; push < 3; ++push) second->push_rows(0, std::vector<std::uint64_t>{1}, std::vector<float>{-1}, 1);
  second->flush();
  second.reset();
  first.signal(SIGCONT);
  EXPECT_EQ(first.await_exit(), kRefused);
}

}  // namespace
}  // namespace syncopate
