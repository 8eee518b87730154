// Replicas over real streams: lost servers are replaced, and no acknowledged update is lost with them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>

#include "sanitized.hpp"
#include "service/child.hpp"
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
          .coding = {.codec = tested.codec},
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

/// Options of another process with the index of server 0, at another address.
ServerOptions twin_of(const Servers& servers) {
  ServerOptions twin = servers.options(0);
  twin.addresses = {twin.addresses[0] + "-twin"};
  return twin;
}

void await_tables(const Server& server) {
  while (server.status().kept_bytes == 0) std::this_thread::yield();
}

std::string mismatch_of(Server& server) {
  try {
    static_cast<void>(server.wait_for_end(60s));
  } catch (const Mismatch& error) {
    return error.what();
  }
  return "none";
}

TEST(AServer, ThatIsAliveGoesOnAndAnotherOneWithItsIndexIsRefused) {
  Servers servers(2, {.addresses = {}, .replicas = 1});
  const WorkerOptions options{.servers = {}, .workers = 2};
  const auto all = programs(servers, options);
  on_each(all, [](Program& program) {
    program.start();
    program.step();
  });
  while (!servers.are_replicated()) std::this_thread::yield();
  const auto twin = Server::start(twin_of(servers));
  const std::string told = mismatch_of(*twin);
  EXPECT_NE(told.find("server 0 is another live process, whose replica is at " + servers.options(1).addresses[0]),
            std::string::npos)
      << told;
  EXPECT_EQ(twin->status().kept_bytes, 0U);
  on_each(all, [](Program& program) { program.go_on(5); });
  EXPECT_TRUE(servers[0].wait_for_end(10s));
  Servers undisturbed(2);
  const auto whole = programs(undisturbed, options);
  run_all(whole, 5);
  for (const auto& program : all) {
    EXPECT_EQ(program->worker().statistics().reconnections, 0U) << "its stream was ended";
    EXPECT_EQ(program->weights(1), whole[0]->weights(1));
  }
}

TEST(AServer, ThatIsLostIsReplacedWithoutWaitingForTheSilence) {
  Servers servers(2, {.addresses = {}, .replicas = 1, .access = {.silence = 1h}});
  const auto all = programs(servers, {.servers = {}, .workers = 1});
  all[0]->start();
  all[0]->step();
  while (!servers.are_replicated()) std::this_thread::yield();
  const std::uint64_t kept = servers[0].status().kept_bytes;
  const auto twin = Server::start(twin_of(servers));
  servers.stop(0);
  await_tables(*twin);
  EXPECT_EQ(twin->status().kept_bytes, kept);
}

constexpr char kServers[] = "SYNCOPATE_TEST_SERVERS";
constexpr int kReplaced = 3;

/// Not a test: server 0 of two, as a Child.
TEST(AServer, DISABLED_IsPlayed) {
  const std::string job = std::getenv(kServers);
  auto server = Server::start(
      {.addresses = {job + "0"}, .replicas = 1, .servers = {job + "0", job + "1"}, .log = {.level = LogLevel::off}});
  try {
    while (::getppid() != 1) static_cast<void>(server->wait_for_end(1s));
  } catch (const Mismatch&) {
    server.reset();
    ::_exit(kReplaced);
  }
  ::_exit(0);
}

TEST(AServer, ThatWasSilentIsReplacedAndMayNotGoOn) {
  const std::string job = "@syncopate-test-" + std::to_string(getpid()) + "-silent-";
  Child silent("AServer.DISABLED_IsPlayed", {{kServers, job}});
  ServerOptions options{.addresses = {job + "1"}, .index = 1, .replicas = 1, .servers = {job + "0", job + "1"}};
  options.log.level = LogLevel::error;
  const auto neighbour = Server::start(options);
  Program program(WorkerOptions{.servers = options.servers, .workers = 1});
  program.start();
  program.step();
  while (!neighbour->status().keeps_replica) std::this_thread::yield();
  silent.stop();
  options.addresses = {job + "0-twin"};
  options.index = 0;
  options.patience = 1h;  // it does not give up the worker, which cannot reach it
  const auto twin = Server::start(options);
  await_tables(*twin);
  silent.signal(SIGCONT);
  EXPECT_EQ(silent.await_exit(), kReplaced);
  EXPECT_GT(twin->status().kept_bytes, 0U);
  EXPECT_FALSE(twin->wait_for_end(0s)) << "it serves";
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

TEST(AServer, ThatCannotHandOverTablesEndsTheJobOfEveryWorker) {
  const auto lacks_memory = [](LogLevel, std::string_view line) {
    if (line.find("restores its tables from their replica") != std::string_view::npos) throw std::bad_alloc();
  };
  Servers servers(2, {.addresses = {}, .replicas = 1, .log = {.level = LogLevel::warning, .sink = lacks_memory}});
  const auto all = programs(servers, {.servers = {}, .workers = 1, .timeout = 20s});
  all[0]->start();
  all[0]->step();
  while (!servers.are_replicated()) std::this_thread::yield();
  servers.stop(0);
  servers.start(0);
  const std::string error = error_of(*all[0]);
  for (const std::string_view part : {"server 1 at ", "server 0 cannot restore its tables", std::bad_alloc().what()})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_THROW(static_cast<void>(servers[1].wait_for_end(0s)), SystemFailure);
  EXPECT_FALSE(servers[0].status().serves);
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
