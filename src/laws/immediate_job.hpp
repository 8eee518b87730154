// ImmediateJob: a parameter server's job in one thread, on production's tables, where messages travel in no time.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"

namespace syncopate::laws {

/// Messages are delivered in the order of their sending.
class ImmediateJob final {
 public:
  /// The memory of a worker's table, valid as long as the job; worker 0's holds the first weights.
  using Memory = std::function<Buffer(std::size_t worker, std::size_t table)>;
  /// Fills the gradient of a worker's current step.
  using Gradient =
      std::function<void(std::size_t worker, server::Clock step, std::size_t table, std::span<float> gradient)>;

  ImmediateJob(server::Setup setup, const Memory& memory);

  /// One step of each worker in turn; in lockstep of all together. Returns false if a worker would wait.
  [[nodiscard]] bool step(double rate, const Gradient& gradient);
  /// Every worker reads the weights with all updates. Returns false if one would wait.
  [[nodiscard]] bool finish();
  [[nodiscard]] server::ServerTables& server(std::size_t index) { return *servers_[index]; }
  /// A second process of server `index`, in its present state, which repeats all that the server does from now on.
  [[nodiscard]] server::ServerTables& replica(std::size_t index);

 private:
  [[nodiscard]] std::unique_ptr<server::ServerTables> made(std::size_t index, server::ServerTables::Forward forward);
  void deliver();

  const server::Setup setup_;
  std::deque<std::function<void()>> travelling_;
  std::vector<std::unique_ptr<server::ServerTables>> servers_, replicas_;
  std::vector<std::unique_ptr<server::WorkerTables>> workers_;
};

}  // namespace syncopate::laws
