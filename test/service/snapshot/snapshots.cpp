// Snapshots: jobs whose servers are all lost resume from the newest step that all of them have written completely.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>

#include "service/child.hpp"
#include "service/job.hpp"
#include "service/snapshot/snapshot_files.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;
namespace fs = std::filesystem;

ServerOptions snapshots_in(const SnapshotFiles& folder, std::int64_t every) {
  ServerOptions options;
  options.snapshots = folder.name();
  options.snapshot_every = every;
  return options;
}

std::vector<float> end_of(const ServerOptions& server, const WorkerOptions& options, std::int64_t steps) {
  Servers servers(2, server);
  const auto all = programs(servers, options);
  run_all(all, steps);
  for (const auto& program : all) EXPECT_EQ(program->weights(1), all[0]->weights(1));
  return all[0]->weights(1);
}

void put_in_place(const std::string& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

struct RestoredWay {
  const char *optimizer, *answers;
};

class Restored : public testing::TestWithParam<RestoredWay> {};

TEST_P(Restored, InLockstepHasTheBitsOfAnUninterruptedJob) {
  const WorkerOptions options{.servers = {},
                              .workers = 3,
                              .coding = {.dense_below = 1},
                              .answers = GetParam().answers,
                              .optimizer = GetParam().optimizer};
  const std::vector<float> expected = end_of({}, options, 11);
  const SnapshotFiles folder;
  const ServerOptions server = snapshots_in(folder, 4);
  static_cast<void>(end_of(server, options, 9));
  EXPECT_EQ(folder.files().size(), 4U);
  fs::remove(folder.file(1, 8));  // server 1 was killed before it had written
  Servers servers(2, server);
  const auto all = programs(servers, options);
  std::vector<std::jthread> threads;
  for (const auto& program : all)
    threads.emplace_back([&] {
      program->start();
      EXPECT_EQ(program->worker().steps(), 4);
      program->go_on(11);
    });
  threads.clear();
  for (const auto& program : all) EXPECT_EQ(program->weights(1), expected);
}

INSTANTIATE_TEST_SUITE_P(Servers, Restored,
                         testing::Values(RestoredWay{"adamw", "none"}, RestoredWay{"momentum", "topk:0.01"}),
                         [](const auto& tested) { return std::to_string(tested.index); });

TEST(ARestoredJob, GoesOnThoughAServerHasNothingToWrite) {
  const WorkerOptions options{.servers = {}, .workers = 1, .placement = "lpt"};
  const SnapshotFiles folder;
  for (const std::int64_t from : {0, 8}) {
    Servers servers(3, snapshots_in(folder, 4));  // the third one has no table
    const auto all = programs(servers, options);
    all[0]->start();
    EXPECT_EQ(all[0]->worker().steps(), from);
    all[0]->go_on(from + 9);
  }
  EXPECT_FALSE(fs::exists(folder.file(2, 8)));
}

class RestoredStale : public testing::TestWithParam<const char*> {};

TEST_P(RestoredStale, GoesOnFromAStepOfEverybody) {
  const WorkerOptions options{.servers = {}, .workers = 2, .consistency = GetParam()};
  const SnapshotFiles folder;
  const ServerOptions server = snapshots_in(folder, 2);
  static_cast<void>(end_of(server, options, 9));
  Servers servers(2, server);
  const auto all = programs(servers, options);
  std::vector<std::jthread> threads;
  for (const auto& program : all)
    threads.emplace_back([&] {
      program->start();
      EXPECT_GE(program->worker().steps(), 2);
      program->go_on(14);
    });
  threads.clear();
  EXPECT_EQ(all[0]->weights(1), all[1]->weights(1));
}

INSTANTIATE_TEST_SUITE_P(Servers, RestoredStale, testing::Values("ssp:3", "tap"),
                         [](const auto& tested) { return std::to_string(tested.index); });

TEST(ARestoredJob, RefusesWorkersOfAnotherNamingBoth) {
  const SnapshotFiles folder;
  const WorkerOptions options{.servers = {}, .workers = 1};
  static_cast<void>(end_of(snapshots_in(folder, 2), options, 4));
  Servers servers(2, snapshots_in(folder, 2));
  WorkerOptions other = options;
  other.optimizer = "sgd";
  Program program(servers, other);
  try {
    program.start();
    FAIL() << "it was accepted";
  } catch (const Mismatch& error) {
    for (const char* part : {"step4.snapshot", "optimizer is momentum there and sgd here"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(ARestoredJob, SaysOnceWhatDiffers) {
  const SnapshotFiles folder;
  static_cast<void>(end_of(snapshots_in(folder, 2), {.servers = {}, .workers = 1}, 4));
  std::mutex mutex;
  std::vector<std::string> said;
  const Log log{LogLevel::warning, [&](LogLevel, std::string_view line) {
                  const std::lock_guard lock(mutex);
                  said.emplace_back(line);
                }};
  {
    WorkerOptions options{.servers = {}, .workers = 1, .optimizer = "sgd", .log = log};
    std::vector<std::unique_ptr<Server>> servers;
    for (std::size_t index = 0; index < 2; ++index) {
      ServerOptions server = snapshots_in(folder, 2);
      server.index = index;
      server.addresses = {"@syncopate-once-" + std::to_string(getpid()) + "-" + std::to_string(index)};
      server.log = log;
      options.servers.push_back(server.addresses[0]);
      servers.push_back(Server::start(server));
    }
    const auto worker = TableWorker::connect(options);
    std::vector<float> weights(3);
    static_cast<void>(worker->create_table("table", Buffer(std::span(weights))));
    EXPECT_THROW(worker->start({}), Mismatch);
  }
  EXPECT_EQ(std::ranges::count_if(said, [](const auto& line) { return line.find("another job") != line.npos; }), 0)
      << "the worker's error states it, " << (said.empty() ? "" : said[0]);
}

TEST(ARestoredServer, TellsWorkersThatWereThereBeforeToStartAgain) {
  const SnapshotFiles folder;
  Servers servers(1, snapshots_in(folder, 2));
  const WorkerOptions options{.servers = {}, .workers = 1, .timeout = 20s};
  Program before(servers, options);
  before.start();
  for (int step = 0; step < 5; ++step) before.step();
  for (std::size_t table = 0; table < 2; ++table) before.worker().sync(table);
  servers.stop(0);
  servers.start(0);
  try {
    before.go_on(9);
    FAIL() << "it went on";
  } catch (const PeerLost& error) {
    EXPECT_NE(std::string(error.what()).find("restart the workers"), std::string::npos) << error.what();
  }
  before.leave();
  Program again(servers, options);
  again.start();
  EXPECT_EQ(again.worker().steps(), 4);
  again.go_on(9);
}

TEST(ASnapshot, ThatCannotBeWrittenLeavesTheJobAsItIs) {
  const SnapshotFiles folder;
  const WorkerOptions options{.servers = {}, .workers = 1};
  Servers servers(2, snapshots_in(folder, 2));
  fs::remove_all(folder.name());
  put_in_place(folder.name(), "a file stands where the folder was");
  Program program(servers, options);
  program.run(6);
  EXPECT_EQ(program.worker().steps(), 6);
}

TEST(AServer, WithAReplicaTakesNoSnapshots) {
  const SnapshotFiles folder;
  ServerOptions options = snapshots_in(folder, 2);
  options.replicas = 1;
  EXPECT_THROW(Servers(2, options), Misuse);
}

constexpr const char* kSnapshotRole = "DISABLED_SnapshotRole.Server";

/// Run by a child: a server that is killed.
TEST(DISABLED_SnapshotRole, Server) {
  ServerOptions options;
  options.snapshots = std::getenv("SNAPSHOT_FOLDER");
  options.snapshot_every = 2;
  options.index = static_cast<std::size_t>(std::atoi(std::getenv("SNAPSHOT_INDEX")));
  options.addresses = {std::string(std::getenv("SNAPSHOT_ADDRESS")) + std::getenv("SNAPSHOT_INDEX")};
  options.log.level = LogLevel::error;
  const auto server = Server::start(options);
  wait_for_the_end();
}

class Killed final {
 public:
  Killed(const SnapshotFiles& folder, const std::string& address) {
    for (const char* index : {"0", "1"})
      children_.emplace_back(kSnapshotRole, std::map<std::string, std::string>{{"SNAPSHOT_FOLDER", folder.name()},
                                                                               {"SNAPSHOT_INDEX", index},
                                                                               {"SNAPSHOT_ADDRESS", address}});
  }

 private:
  std::vector<Child> children_;
};

TEST(AJob, WhoseProcessesAreAllKilledGoesOnWithTheBitsOfAnUninterruptedOne) {
  WorkerOptions options{.servers = {}, .workers = 2, .optimizer = "adamw"};
  const std::vector<float> expected = end_of({}, options, 12);
  const SnapshotFiles folder;
  const std::string address = "@syncopate-killed-" + std::to_string(getpid()) + "-";
  const auto begin = [&](std::size_t worker) {
    WorkerOptions own = options;
    own.servers = {address + "0", address + "1"};
    own.worker = worker;
    return std::make_unique<Program>(own);
  };
  std::int64_t first = -1;
  {
    std::vector<std::unique_ptr<Program>> all;
    const Killed servers(folder, address);
    for (std::size_t worker = 0; worker < 2; ++worker) all.push_back(begin(worker));
    std::vector<std::jthread> threads;
    for (const auto& program : all)
      threads.emplace_back([&] {
        program->start();
        while (program->worker().steps() < 9) program->step();
        for (std::size_t table = 0; table < 2; ++table) program->worker().sync(table);
      });
    threads.clear();
    for (const auto& program : all) program->leave();
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!(fs::exists(folder.file(0, 8)) && fs::exists(folder.file(1, 8))) &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }  // killed
  const Killed servers(folder, address);
  std::vector<std::unique_ptr<Program>> all;
  for (std::size_t worker = 0; worker < 2; ++worker) all.push_back(begin(worker));
  std::vector<std::jthread> threads;
  for (const auto& program : all)
    threads.emplace_back([&] {
      program->start();
      if (program == all[0]) first = program->worker().steps();
      program->go_on(12);
    });
  threads.clear();
  EXPECT_EQ(first, 8);
  for (const auto& program : all) EXPECT_EQ(program->weights(1), expected);
}

/// A worker of two that adds 1 to the rows of two tables in each step.
class RowProgram final {
 public:
  RowProgram(std::vector<std::string> servers, const std::string& consistency, bool has_weights, std::size_t index)
      : has_weights_(has_weights) {
    WorkerOptions options{
        .servers = std::move(servers), .worker = index, .workers = 2, .consistency = consistency, .optimizer = "sgd"};
    options.log.level = LogLevel::error;
    worker_ = TableWorker::connect(options);
    if (has_weights) worker_->create_table("table", Buffer(std::span(weights_)));
    worker_->create_rows({.name = "wide", .width = 4, .scale = 0});
    worker_->create_rows({.name = "narrow", .width = 1, .scale = 0});
    worker_->start();
  }
  [[nodiscard]] std::int64_t steps() const { return worker_->steps(); }
  void go_on(std::int64_t last) {
    std::vector<float> gradient(weights_.size());
    while (steps() < last) {
      if (has_weights_) worker_->sync(0);
      if (has_weights_) worker_->update(0, Buffer(std::span(gradient)), 0.1);
      for (std::size_t table = 0; table < 2; ++table)
        worker_->push_rows(table, kIds, std::vector<float>(kIds.size() * kWidths[table], -1.0F), 1);
      worker_->clock(0.1);
    }
    worker_->flush();
  }
  /// The least and the largest value of all rows, which are equal if all rows have the same pushes.
  [[nodiscard]] std::pair<float, float> values() {
    std::vector<float> all;
    for (std::size_t table = 0; table < 2; ++table) {
      std::vector<float> rows(kIds.size() * kWidths[table]);
      worker_->pull_rows(table, kIds, rows);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    const auto [least, most] = std::ranges::minmax(all);
    return {least, most};
  }
  /// All workers call it.
  void meet() { worker_->visit_rows(0, {}); }

 private:
  static constexpr std::size_t kWidths[] = {4, 1};
  const std::vector<std::uint64_t> kIds{1, 2, 3, 70'000, ~std::uint64_t{0}};
  const bool has_weights_;
  std::vector<float> weights_ = std::vector<float>(10);
  std::unique_ptr<TableWorker> worker_;
};

struct RowWay {
  const char* consistency;
  bool has_weights;
};
class RestoredRows : public testing::TestWithParam<RowWay> {
 protected:
  /// Runs two workers to the end of step `last`; checks with `check` what they find at their start.
  void run(const std::vector<std::string>& servers, std::int64_t last,
           const std::function<void(RowProgram&, std::size_t)>& check) {
    std::vector<std::jthread> threads;
    for (std::size_t index = 0; index < 2; ++index)
      threads.emplace_back([&, index] {
        RowProgram program(servers, GetParam().consistency, GetParam().has_weights, index);
        check(program, index);
        program.meet();  // before any push
        program.go_on(last);
        program.meet();
        check(program, index);
        program.meet();
      });
  }
};

TEST_P(RestoredRows, HaveThePushesOfTheStepsOfTheSnapshot) {
  const bool is_exact = std::string_view(GetParam().consistency) == "bsp";
  const SnapshotFiles folder;
  {
    Servers servers(2, snapshots_in(folder, 4));
    run(servers.addresses(), 10, [](RowProgram& program, std::size_t) {
      EXPECT_EQ(program.values(), std::pair(2.0F * program.steps(), 2.0F * program.steps()));
    });
  }
  Servers servers(2, snapshots_in(folder, 4));
  std::atomic<std::int64_t> began = -1;
  run(servers.addresses(), 14, [&](RowProgram& program, std::size_t) {
    if (program.steps() < 14) began = program.steps();
    const auto [least, most] = program.values();
    EXPECT_GE(least, 2.0F * program.steps());
    if (is_exact) {
      EXPECT_EQ(most, 2.0F * program.steps());
    }
  });
  EXPECT_GE(began, 4);
  EXPECT_LE(began, 8);
  if (is_exact) {
    EXPECT_EQ(began, 8);
  }
}

TEST_P(RestoredRows, OfAJobWhoseServersAreKilledHaveThePushesOfTheStepsOfTheSnapshot) {
  const SnapshotFiles folder;
  const std::string address = "@syncopate-killed-rows-" + std::to_string(getpid()) + "-";
  const std::vector<std::string> servers{address + "0", address + "1"};
  {
    const Killed killed(folder, address);
    run(servers, 9, [](RowProgram&, std::size_t) {});
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!(fs::exists(folder.file(0, 8)) && fs::exists(folder.file(1, 8))) &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }
  const Killed again(folder, address);
  run(servers, 11, [&](RowProgram& program, std::size_t) {
    EXPECT_GE(program.steps(), 8);
    EXPECT_GE(program.values().first, 2.0F * program.steps());
  });
}

INSTANTIATE_TEST_SUITE_P(Servers, RestoredRows,
                         testing::Values(RowWay{"bsp", true}, RowWay{"bsp", false}, RowWay{"tap", true},
                                         RowWay{"tap", false}),
                         [](const auto& tested) { return std::to_string(tested.index); });

}  // namespace
}  // namespace syncopate
