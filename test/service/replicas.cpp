// Replicas over real streams: lost servers are replaced, and no acknowledged update is lost with them.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sanitized.hpp"
#include "service/job.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

struct Replicated {
  const char *consistency, *codec, *answers;
};

WorkerOptions options_of(const Replicated& tested) {
  return {.servers = {},
          .workers = 3,
          .consistency = tested.consistency,
          .codec = tested.codec,
          .answers = tested.answers,
          .timeout = 60s};
}

constexpr std::int64_t kSteps = test::kSanitized ? 12 : 24;

/// The final weights of a job whose servers are lost and replaced, one at a time, until its workers have ended.
std::vector<float> end_of(const Replicated& tested, std::atomic<std::size_t>& replaced) {
  Servers servers(3, {.addresses = {}, .replicas = 1});
  const auto all = programs(servers, options_of(tested));
  std::atomic<bool> is_over = false;
  std::jthread death([&] {
    for (std::size_t victim = 0; !is_over; victim = (victim + 2) % 3) {
      while (!is_over && !servers.are_replicated()) std::this_thread::yield();
      if (is_over) return;
      servers.stop(victim);
      servers.start(victim);
      ++replaced;
    }
  });
  {
    std::vector<std::jthread> threads;
    for (const auto& program : all)
      threads.emplace_back([&] {
        program->start();
        while (program->worker().steps() < kSteps) {
          while (program->worker().steps() == kSteps / 2 && replaced == 0) std::this_thread::yield();
          program->step();
        }
        program->worker().finish();
      });
  }
  is_over = true;
  death.join();
  for (const auto& program : all) EXPECT_EQ(program->weights(1), all[0]->weights(1));
  return all[0]->weights(1);
}

class Replicas : public testing::TestWithParam<Replicated> {};

TEST_P(Replicas, LoseNothingThatWasAcknowledged) {
  std::atomic<std::size_t> replaced = 0;
  const std::vector<float> weights = end_of(GetParam(), replaced);
  RecordProperty("replaced", static_cast<int>(replaced));
  Servers servers(3);
  const auto whole = programs(servers, options_of(GetParam()));
  run_all(whole, kSteps);
  if (std::string_view(GetParam().consistency) == "bsp") {
    EXPECT_EQ(weights, whole[0]->weights(1)) << "the bits of a job without a loss";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Replicas,
                         testing::Values(Replicated{"bsp", "none", "none"}, Replicated{"bsp", "topk:0.1", "none"},
                                         Replicated{"ssp:3", "none", "none"}, Replicated{"tap", "none", "none"}),
                         [](const auto& tested) { return std::to_string(tested.index); });

TEST(AServer, ThatAnotherOneHasReplacedMayNotGoOn) {
  Servers servers(2, {.addresses = {}, .replicas = 1});
  const auto all = programs(servers, {.servers = {}, .workers = 1});
  all[0]->start();
  all[0]->step();
  while (!servers.are_replicated()) std::this_thread::yield();
  ServerOptions other = servers.options(0);
  other.addresses = {other.addresses[0] + "-other"};
  const auto successor = Server::start(other);
  EXPECT_THROW(static_cast<void>(servers[0].wait_for_end(30s)), Mismatch);
  while (successor->status().kept_bytes == 0) std::this_thread::yield();
  EXPECT_EQ(successor->status().kept_bytes, servers[0].status().kept_bytes);
}

TEST(AServer, ThatTakesAnothersPlaceKnowsWhoHasFinished) {
  Servers servers(2, {.addresses = {}, .patience = 100s, .replicas = 1});
  const auto all = programs(servers, {.servers = {}, .workers = 2});
  run_all(all, 2);  // both finish
  EXPECT_TRUE(servers[0].wait_for_end(10s));
  while (!servers.are_replicated()) std::this_thread::yield();
  servers.stop(0);
  servers.start(0);
  EXPECT_TRUE(servers[0].wait_for_end(30s)) << "it waits for workers that have left";
}

std::string error_of(Program& program) {
  try {
    for (;;) program.step();
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(AServer, ThatWasLostWithItsReplicaSaysSo) {
  Servers servers(3, {.addresses = {}, .replicas = 1});
  const auto all = programs(servers, {.servers = {}, .workers = 1, .timeout = 20s});
  all[0]->start();
  all[0]->step();
  while (!servers.are_replicated()) std::this_thread::yield();
  servers.stop(0);
  servers.stop(1);  // the server with its replica
  servers.start(0);
  servers.start(1);
  const std::string error = error_of(*all[0]);
  EXPECT_NE(error.find("server 0 has lost its tables"), std::string::npos) << error;
}

TEST(AServer, ThatWasLostWithoutAReplicaSaysSo) {
  Servers servers(2);
  const auto all = programs(servers, {.servers = {}, .workers = 1, .timeout = 20s});
  all[0]->start();
  all[0]->step();
  servers.stop(1);
  servers.start(1);
  const std::string error = error_of(*all[0]);
  EXPECT_NE(error.find("server 1 has lost its tables"), std::string::npos) << error;
}

TEST(Replicas, NeedAnotherServer) {
  ServerOptions options{.addresses = {"@syncopate-alone"}, .replicas = 1, .servers = {"@syncopate-alone"}};
  EXPECT_THROW(static_cast<void>(Server::start(options)), Misuse);
  options.replicas = 2;
  EXPECT_THROW(static_cast<void>(Server::start(options)), Misuse);
}

}  // namespace
}  // namespace syncopate
