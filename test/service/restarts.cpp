// Servers that are restarted without the others: workers are refused instead of given a mixture of two states.
#include <gtest/gtest.h>

#include <thread>

#include "service/job.hpp"
#include "service/snapshot/snapshot_files.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

constexpr std::size_t kAll = ~std::size_t{0};

WorkerOptions alone() { return {.servers = {}, .workers = 1, .timeout = 60s}; }

/// A worker's process that makes this number of steps, and is then gone.
void run_to(const Servers& servers, std::int64_t steps) {
  Program program(servers, alone());
  program.start();
  while (program.worker().steps() < steps) program.step();
  program.worker().flush();
}

void restart(Servers& servers, std::size_t which) {
  for (std::size_t server = 0; server < servers.addresses().size(); ++server)
    if (which == kAll || server == which) servers.stop(server);
  for (std::size_t server = 0; server < servers.addresses().size(); ++server)
    if (which == kAll || server == which) servers.start(server);
}

/// The reason for which a new worker does not start; empty: it starts.
std::string refusal(const Servers& servers) {
  Program program(servers, alone());
  try {
    program.start();
  } catch (const Mismatch& error) {
    return error.what();
  }
  return "";
}

void expect_named(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

class Restarted : public testing::TestWithParam<std::size_t> {};

TEST_P(Restarted, AloneWithoutASnapshotIsRefusedToEveryWorkerThatComes) {
  Servers servers(2);
  run_to(servers, 3);
  restart(servers, GetParam());
  const std::size_t other = 1 - GetParam();
  for (int times = 0; times < 3; ++times)
    expect_named(refusal(servers),
                 {"server " + std::to_string(other) + " at " + servers.addresses()[other] +
                      " is at step 3 of a start from step 0",
                  "server " + std::to_string(GetParam()) + " at " + servers.addresses()[GetParam()] + " is at step 0",
                  "restart all servers"});
  restart(servers, kAll);
  EXPECT_EQ(refusal(servers), "");
}

TEST_P(Restarted, AloneFromASnapshotIsRefusedUntilAllServersAre) {
  const SnapshotFiles folder;
  ServerOptions options;
  options.snapshots = folder.name();
  options.snapshot_every = 2;
  Servers servers(2, options);
  run_to(servers, 3);
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (folder.files().size() < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  restart(servers, GetParam());
  for (int times = 0; times < 3; ++times)
    expect_named(refusal(servers),
                 {"is at step 3 of a start from step 0", "server " + std::to_string(GetParam()),
                  "is at step 2 of a start from step 2", "restart all servers", "newest snapshot that all servers"});
  restart(servers, kAll);
  Program program(servers, alone());
  program.start();
  EXPECT_EQ(program.worker().steps(), 2);
}

INSTANTIATE_TEST_SUITE_P(Servers, Restarted, testing::Values(0, 1),
                         [](const auto& tested) { return std::to_string(tested.param); });

TEST(RestartedServers, ThatContinueFromTheirReplicasAreNotRefused) {
  Servers servers(3, {.addresses = {}, .replicas = 1});
  run_to(servers, 3);
  for (std::size_t victim = 0; victim < 3; ++victim) {
    while (!servers.are_replicated()) std::this_thread::yield();
    restart(servers, victim);
    EXPECT_EQ(refusal(servers), "") << victim;
    run_to(servers, 5 + static_cast<std::int64_t>(victim));
  }
}

TEST(RestartedServers, BeforeAWorkerCameAreNotRefused) {
  Servers servers(2);
  restart(servers, 1);
  EXPECT_EQ(refusal(servers), "");
}

}  // namespace
}  // namespace syncopate
