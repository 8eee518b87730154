// Fits a line through a parameter server: each worker has its own points, and computes at its own pace.
#include "syncopate/server.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr int kPoints = 64;  // per worker
constexpr int kSteps = 200;
constexpr double kRate = 0.01;  // each worker's update is applied

/// Trains as one worker and returns whether y = 3 x - 1 was found. Prints an error, such as a server that is lost.
bool train(const syncopate::WorkerOptions& options) try {
  float line[] = {0, 0}, gradient[] = {0, 0};  // slope and offset
  const auto worker = syncopate::TableWorker::connect(options);
  const std::size_t table = worker->create_table("line", syncopate::Buffer(std::span<float>(line)));
  worker->start();  // worker 0's weights are those of all
  for (int step = 0; step < kSteps; ++step) {
    worker->sync(table);  // as fresh as the consistency model requires
    for (int i = 0; i < kPoints; ++i) {
      const auto all = static_cast<float>(options.workers * kPoints);
      const float x = 2 * static_cast<float>(options.worker * kPoints + static_cast<std::size_t>(i)) / all - 1;
      const float error = line[0] * x + line[1] - (3 * x - 1);
      gradient[0] += 2 * error * x / kPoints;
      gradient[1] += 2 * error / kPoints;
    }
    worker->update(table, syncopate::Buffer(std::span<float>(gradient)), kRate);  // sets the gradient to zero
    worker->clock(kRate);
  }
  worker->finish();  // now all workers have the same weights
  std::printf("worker %zu of %zu: y = %.2f x + %.2f\n", options.worker, options.workers, line[0], line[1]);
  return std::abs(line[0] - 3) < 0.01F && std::abs(line[1] + 1) < 0.01F;
} catch (const std::exception& error) {
  std::fprintf(stderr, "worker %zu: %s\n", options.worker, error.what());
  return false;
}

}  // namespace

int main() try {
  if (std::getenv("SYNCOPATE_SERVERS") != nullptr) {  // set by `syncopate run -n 3 --servers 2 -- example_server`
    syncopate::WorkerOptions options = syncopate::worker_from_environment();
    options.consistency = "ssp:3";
    return train(options) ? 0 : 1;
  }
  // Alone: one server and three workers on threads of this process.
  const auto server = syncopate::Server::start({.addresses = {"127.0.0.1:0"}});
  std::vector<std::thread> workers;
  bool found[3] = {};
  for (std::size_t i = 0; i < 3; ++i)
    workers.emplace_back([&, i] {
      found[i] = train({.servers = server->addresses(), .worker = i, .workers = 3, .consistency = "ssp:3"});
    });
  for (std::thread& worker : workers) worker.join();
  return found[0] && found[1] && found[2] ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
