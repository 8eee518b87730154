// Tables of rows over real streams: pulls and pushes of two workers, a server that is replaced, and refusals by name.
#include <gtest/gtest.h>

#include <numeric>

#include "service/job.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace test;

constexpr std::size_t kWidth = 16, kPushes = 40;

RowOptions counted() { return {.name = "rows", .width = kWidth, .scale = 0}; }

std::unique_ptr<TableWorker> row_worker(const Servers& servers, std::size_t worker, std::size_t workers) {
  WorkerOptions options{.servers = servers.addresses(), .worker = worker, .workers = workers, .consistency = "tap"};
  options.log.level = LogLevel::error;
  return TableWorker::connect(options);
}

/// Adds 1 to every row in each push; returns the sum of a row's first float at the end.
void push_all(TableWorker& worker, const std::function<void(std::size_t)>& before) {
  std::vector<std::uint64_t> ids(5000);
  std::iota(ids.begin(), ids.end(), std::uint64_t{1} << 40);
  const std::vector<float> gradients(ids.size() * kWidth, -1.0F);
  std::vector<float> rows(gradients.size());
  for (std::size_t push = 0; push < kPushes; ++push) {
    before(push);
    worker.push_rows(0, ids, gradients, 1);
    worker.pull_rows(0, ids, rows);
    EXPECT_GE(*std::ranges::min_element(rows), static_cast<float>(push + 1)) << "a worker reads its own pushes";
    EXPECT_LE(*std::ranges::max_element(rows), static_cast<float>(2 * kPushes));
  }
  worker.flush();
}

void expect_every_push_once(const std::function<void(std::size_t)>& before, Servers& servers) {
  std::vector<std::unique_ptr<TableWorker>> workers(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        workers[i] = row_worker(servers, i, 2);
        workers[i]->create_rows(counted());
        workers[i]->start();
        push_all(
            *workers[i], i == 0 ? before : [](std::size_t) {});
      });
  }
  std::vector<float> rows(3 * kWidth);
  const std::uint64_t first = std::uint64_t{1} << 40;
  workers[0]->pull_rows(0, std::vector<std::uint64_t>{first, first + 4999, first}, rows);
  EXPECT_EQ(rows, std::vector<float>(3 * kWidth, 2 * kPushes));
  EXPECT_GT(servers[0].status().kept_bytes, 1000 * kWidth * sizeof(float));
  for (auto& worker : workers) worker->finish();
}

TEST(RowService, AppliesEveryPushOnce) {
  Servers servers(2);
  expect_every_push_once([](std::size_t) {}, servers);
}

TEST(RowService, AppliesEveryPushOnceThoughAServerIsReplaced) {
  ServerOptions options{.replicas = 1};
  Servers servers(2, options);
  expect_every_push_once(
      [&](std::size_t push) {
        if (push != kPushes / 4) return;
        while (!servers.are_replicated()) std::this_thread::yield();
        servers.stop(1);
        servers.start(1);
      },
      servers);
}

TEST(RowService, RefusesRowsBeyondTheMemoryByName) {
  ServerOptions options{.memory_bytes = std::size_t{1} << 20};
  Servers servers(1, options);
  const auto worker = row_worker(servers, 0, 1);
  worker->create_rows({.name = "users", .width = 64});
  worker->start();
  std::vector<std::uint64_t> ids(10'000);
  std::iota(ids.begin(), ids.end(), 0);
  try {
    worker->push_rows(0, ids, std::vector<float>(ids.size() * 64), 1);
    worker->flush();
    FAIL() << "rows of 3 MiB are in 1 MiB";
  } catch (const Misuse& error) {
    EXPECT_NE(std::string(error.what()).find("'users'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("may keep 1 MiB (--memory)"), std::string::npos) << error.what();
  }
}

TEST(RowService, RefusesAWorkerWithOtherRows) {
  Servers servers(1);
  const auto one = row_worker(servers, 0, 2), other = row_worker(servers, 1, 2);
  EXPECT_EQ(one->create_rows(counted()), 0U);
  EXPECT_EQ(one->create_rows(counted()), 1U);
  EXPECT_THROW(one->create_rows({.name = "none", .width = 0}), Misuse);
  other->create_rows(counted());
  EXPECT_THROW(other->pull_rows(0, {}, {}), Misuse) << "before start";
  one->start();
  EXPECT_THROW(one->create_rows(counted()), Misuse) << "after start";
  EXPECT_THROW(other->start(), Mismatch);
}

/// Runs `work` for each worker of a job with the table `counted` on its own thread.
void on_workers(Servers& servers, std::size_t workers, const std::function<void(TableWorker&, std::size_t)>& work) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < workers; ++i)
    threads.emplace_back([&, i] {
      const auto worker = row_worker(servers, i, workers);
      worker->create_rows(counted());
      worker->start();
      work(*worker, i);
      worker->finish();
    });
}

/// While one worker visits the rows, the others push nothing, although they do not visit themselves and go on at once.
TEST(RowService, AVisitHasExactlyThePushesBeforeItAndIsRestoredWithOtherServersAndWorkers) {
  constexpr std::size_t kRows = 20'000;
  std::vector<std::uint64_t> ids(kRows);
  std::iota(ids.begin(), ids.end(), std::uint64_t{1} << 40);
  const std::vector<float> gradients(ids.size() * kWidth, -1.0F);
  std::vector<KeptRows> parts;
  Servers servers(2);
  on_workers(servers, 3, [&](TableWorker& worker, std::size_t index) {
    for (std::size_t push = 0; push <= index; ++push) worker.push_rows(0, ids, gradients, 1);
    worker.visit_rows(
        0, index == 1 ? [&](const KeptRows& part) { parts.push_back(part); } : std::function<void(const KeptRows&)>());
    worker.push_rows(0, ids, gradients, 1);
  });
  std::vector<std::uint64_t> seen;
  for (const KeptRows& part : parts) {
    EXPECT_LE(part.values.size() * sizeof(float), std::size_t{1} << 18);
    seen.insert(seen.end(), part.ids.begin(), part.ids.end());
    for (const std::uint64_t steps : part.steps) EXPECT_EQ(steps, 6U);
    EXPECT_EQ(part.values, std::vector<float>(part.ids.size() * kWidth, 6.0F));
  }
  std::ranges::sort(seen);
  EXPECT_EQ(seen, ids);

  Servers others(3);
  on_workers(others, 2, [&](TableWorker& worker, std::size_t) {
    for (const KeptRows& part : parts) worker.restore_rows(0, part);
    worker.push_rows(0, ids, gradients, 1);
    worker.visit_rows(0, {});
    std::vector<float> rows(gradients.size());
    worker.pull_rows(0, ids, rows);
    EXPECT_EQ(rows, std::vector<float>(rows.size(), 8.0F)) << "rows that two workers restore have no push twice";
  });
}

TEST(RowService, AVisitThatThrowsEndsForTheOthers) {
  Servers servers(1);
  on_workers(servers, 2, [&](TableWorker& worker, std::size_t index) {
    worker.push_rows(0, std::vector<std::uint64_t>{1}, std::vector<float>(kWidth), 1);
    const auto refuse = [](const KeptRows&) { throw std::runtime_error("the disk is full"); };
    if (index == 0)
      EXPECT_THROW(worker.visit_rows(0, refuse), std::runtime_error);
    else
      EXPECT_NO_THROW(worker.visit_rows(0, {}));
    std::size_t count = 0;
    worker.visit_rows(0, [&](const KeptRows& part) { count += part.ids.size(); });
    EXPECT_EQ(count, 1U);
    EXPECT_THROW(worker.visit_rows(1, {}), Misuse);
  });
}

}  // namespace
}  // namespace syncopate
