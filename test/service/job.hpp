// A job of servers and workers over real streams, in one process: for tests of its final weights.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "sanitized.hpp"
#include "syncopate/server.hpp"

namespace syncopate::test {

/// Servers of one job on this host, under unique names.
class Servers final {
 public:
  explicit Servers(std::size_t count, ServerOptions options = {}) {
    static int jobs = 0;
    const std::string job = "@syncopate-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
    for (std::size_t index = 0; index < count; ++index) options.servers.push_back(job + "-" + std::to_string(index));
    for (std::size_t index = 0; index < count; ++index) {
      options.index = index;
      options.addresses = {options.servers[index]};
      options.log.level = options.log.level.value_or(LogLevel::error);
      options_.push_back(options);
      servers_.push_back(Server::start(options));
    }
  }
  [[nodiscard]] std::vector<std::string> addresses() const {
    std::vector<std::string> addresses;
    for (const ServerOptions& options : options_) addresses.push_back(options.addresses.front());
    return addresses;
  }
  [[nodiscard]] const ServerOptions& options(std::size_t index) const { return options_[index]; }
  void stop(std::size_t index) { servers_[index].reset(); }
  void start(std::size_t index) { servers_[index] = Server::start(options_[index]); }
  /// Whether every server has its tables and a replica, so that any one of them may die.
  [[nodiscard]] bool are_replicated() const {
    return std::ranges::all_of(servers_, [](const auto& server) {
      const ServerStatus status = server->status();
      return status.keeps_replica && status.serves;
    });
  }
  Server& operator[](std::size_t index) { return *servers_[index]; }

 private:
  std::vector<ServerOptions> options_;
  std::vector<std::unique_ptr<Server>> servers_;
};

/// Elements of the large table of a Program: several blocks on one server.
inline constexpr std::size_t kLarge = kSanitized ? 270'000 : 700'000;

/// A worker with two tables, one of several blocks, that takes part in `steps` steps; gradients are drawn.
class Program final {
 public:
  Program(const Servers& servers, WorkerOptions options) : Program(at(servers, std::move(options))) {}
  explicit Program(WorkerOptions options) : options_(std::move(options)) {
    options_.log.level = LogLevel::error;
    for (std::size_t i = 0; i < weights_[1].size(); ++i) weights_[1][i] = static_cast<float>(i % 7);
  }

  void connect() {
    worker_ = TableWorker::connect(options_);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(worker_->create_table("table " + std::to_string(i), Buffer(std::span(weights_[i]))), i);
  }
  void start(KeptTables earlier = {}) {
    connect();
    for (std::size_t i = 0, at = 0; i < 2 && !earlier.weights.empty(); at += weights_[i++].size())
      std::copy_n(earlier.weights.begin() + static_cast<std::ptrdiff_t>(at), weights_[i].size(), weights_[i].begin());
    worker_->start(std::move(earlier));
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
    go_on(steps);
  }
  void go_on(std::int64_t steps) {
    while (worker_->steps() < steps) step();
    worker_->finish();
  }
  [[nodiscard]] const std::vector<float>& weights(std::size_t table) const { return weights_[table]; }
  TableWorker& worker() { return *worker_; }
  void leave() { worker_.reset(); }

 private:
  [[nodiscard]] static WorkerOptions at(const Servers& servers, WorkerOptions options) {
    options.servers = servers.addresses();
    return options;
  }

  WorkerOptions options_;
  std::vector<float> weights_[2] = {std::vector<float>(37), std::vector<float>(kLarge)};
  std::unique_ptr<TableWorker> worker_;
};

inline std::vector<std::unique_ptr<Program>> programs(const Servers& servers, const WorkerOptions& options) {
  std::vector<std::unique_ptr<Program>> made;
  for (std::size_t worker = 0; worker < options.workers; ++worker) {
    WorkerOptions own = options;
    own.worker = worker;
    made.push_back(std::make_unique<Program>(servers, own));
  }
  return made;
}

/// Each program's act, on a thread of its own.
inline void on_each(std::span<const std::unique_ptr<Program>> programs, const std::function<void(Program&)>& act) {
  std::vector<std::jthread> threads;
  for (const auto& program : programs) threads.emplace_back([&] { act(*program); });
}

inline void run_all(std::span<const std::unique_ptr<Program>> programs, std::int64_t steps) {
  on_each(programs, [&](Program& program) { program.run(steps); });
}

}  // namespace syncopate::test
