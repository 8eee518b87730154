// Newcomers: a process that claims to be a worker of a job does not harm the real one.
#include <gtest/gtest.h>

#include <functional>

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
  const auto each = [&](const std::function<void(Program&)>& act) {
    std::vector<std::jthread> threads;
    for (const auto& program : all) threads.emplace_back([&] { act(*program); });
  };
  each([](Program& program) {
    program.start();
    program.step();
  });
  meanwhile(servers);
  each([](Program& program) { program.go_on(5); });
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

class Newcomer : public testing::TestWithParam<Misfit> {};

TEST_P(Newcomer, ThatDoesNotFitTheJobIsRefusedAndTheHealthyWorkerOfItsNumberGoesOn) {
  const WorkerOptions options{.servers = {}, .workers = 2};
  run_beside(options, [&](const Servers& servers) {
    WorkerOptions other = options;
    GetParam().make(other);
    const std::string told = mismatch_of(servers, other);
    EXPECT_NE(told.find(GetParam().told), std::string::npos) << told;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Of, Newcomer,
    testing::Values(Misfit{"rules", [](WorkerOptions& options) { options.optimizer = "sgd"; },
                           "the optimizer is momentum there and sgd here"},
                    Misfit{"consistency", [](WorkerOptions& options) { options.consistency = "tap"; }, "tap"},
                    Misfit{"workers", [](WorkerOptions& options) { options.workers = 3; }, "workers is 2 there and 3"}),
    [](const auto& misfit) { return misfit.param.name; });

TEST(Newcomers, WithTheNumberOfAWorkerThatIsAliveAreRefusedAndItGoesOn) {
  const WorkerOptions options{.servers = {}, .workers = 2};
  run_beside(options, [&](const Servers& servers) {
    const std::string told = mismatch_of(servers, options);
    EXPECT_NE(told.find("worker 0 is another live process"), std::string::npos) << told;
  });
}

TEST(Newcomers, TakeThePlaceOfAWorkerThatIsLost) {
  Servers servers(2);
  const WorkerOptions options{.servers = {}, .workers = 1};
  Program first(servers, options), second(servers, options);
  first.start();
  first.step();
  std::jthread newcomer([&] { second.run(4); });
  first.leave();
  newcomer.join();
  EXPECT_EQ(second.worker().steps(), 4);
}

}  // namespace
}  // namespace syncopate
