// ImmediateJob: the tables of a job's workers and servers in one thread, where every message arrives at once.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"

namespace syncopate::server {

using Values = std::vector<float>;

class ImmediateJob final {
 public:
  /// Fills the gradient of a worker's current step.
  using Gradient = std::function<void(std::size_t worker, Clock step, std::size_t table, std::span<float> gradient)>;

  /// `first`: the initial weights of every table; empty: zeros.
  explicit ImmediateJob(const Setup& setup, std::vector<Values> first = {}) : setup_(setup) {
    if (first.empty())
      for (const TableShape& table : setup.tables) first.emplace_back(table.elements);
    weights_.assign(setup.workers, std::move(first));
    for (std::size_t server = 0; server < setup.servers; ++server)
      servers_.push_back(
          std::make_unique<ServerTables>(server, std::size_t{1} << 28, [this, server](Outgoing outgoing) {
            if (!std::holds_alternative<Welcome>(outgoing.message)) answers_.emplace_back(server, std::move(outgoing));
          }));
    for (std::size_t worker = 0; worker < setup.workers; ++worker) {
      std::vector<Buffer> buffers;
      for (Values& table : weights_[worker]) buffers.emplace_back(std::span(table));
      workers_.push_back(std::make_unique<WorkerTables>(setup, worker, buffers, [this, worker](Request request) {
        requests_.emplace_back(worker, std::move(request));
      }));
      for (const auto& server : servers_)
        server->receive(worker, Hello{.is_new = true, .setup = payload_of(setup.bytes())});
    }
    workers_.front()->offer();
    for (const auto& worker : workers_) worker->begin({});
    deliver();
  }

  /// One step of each worker in turn; in lockstep of all together.
  void step(double rate, const Gradient& gradient) {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      WorkerTables& tables = *workers_[worker];
      const UpdateStep at{rate, static_cast<std::uint64_t>(tables.clock()) + 1};
      tables.demand();
      deliver();
      for (std::size_t table = 0; table < setup_.tables.size(); ++table) {
        ASSERT_TRUE(tables.may_read(table)) << "worker " << worker << " waits at step " << tables.clock();
        tables.read(table);
      }
      for (std::size_t table = setup_.tables.size(); table-- > 0;) {
        Values values(setup_.tables[table].elements);
        gradient(worker, tables.clock(), table, values);
        tables.update(table, values, at);
      }
      tables.end_step(at);
      if (!tables.in_lockstep() || worker + 1 == workers_.size()) deliver();
    }
  }
  /// Every worker reads the weights with all updates.
  void finish() {
    for (int turn = 0; turn < 2; ++turn)
      for (const auto& worker : workers_) {
        static_cast<void>(worker->finish());
        deliver();
      }
    for (const auto& worker : workers_) {
      ASSERT_TRUE(worker->finish());
      for (std::size_t table = 0; table < setup_.tables.size(); ++table) worker->read(table);
    }
  }
  [[nodiscard]] const Values& weights(std::size_t worker, std::size_t table) const { return weights_[worker][table]; }
  ServerTables& server(std::size_t index) { return *servers_[index]; }

 private:
  void deliver() {
    while (!requests_.empty() || !answers_.empty()) {
      if (!requests_.empty()) {
        const auto [worker, request] = std::move(requests_.front());
        requests_.pop_front();
        servers_[request.server]->receive(worker, request.message);
      } else {
        auto [server, answer] = std::move(answers_.front());
        answers_.pop_front();
        workers_[answer.worker]->receive(server, std::move(answer.message));
      }
    }
  }

  const Setup setup_;
  std::vector<std::vector<Values>> weights_;  ///< by worker and table
  std::deque<std::pair<std::size_t, Request>> requests_;
  std::deque<std::pair<std::size_t, Outgoing>> answers_;
  std::vector<std::unique_ptr<ServerTables>> servers_;
  std::vector<std::unique_ptr<WorkerTables>> workers_;
};

}  // namespace syncopate::server
