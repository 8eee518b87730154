// Trains a small model on servers and three workers: the programs of this folder share it.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "syncopate/server.hpp"

/// Serves with the program's own components, if `syncopate run --own-servers` started this process as a server: until
/// all workers have ended. Returns at once in a worker.
inline bool serve(const syncopate::Catalogue& catalogue) {
  auto options = syncopate::server_from_environment();  // addresses, index, job and secret, but no catalogue
  if (!options) return false;
  options->catalogue = catalogue;
  const auto server = syncopate::Server::start(*options);
  while (!server->wait_for_end(std::chrono::hours(1))) {
  }
  return true;
}

/// Pulls two tables of weights towards the worker's number, so that training ends at the mean of the workers. Returns
/// whether that is 1. `Real`: the type of weights and gradients in the program's memory.
template <class Real>
bool train(const syncopate::WorkerOptions& own) {
  constexpr double kRate = 0.01;
  std::vector<Real> weights[] = {std::vector<Real>(10), std::vector<Real>(100)};
  const auto worker = syncopate::TableWorker::connect(own);
  worker->create_table("small", std::span(weights[0]));
  worker->create_table("large", std::span(weights[1]));
  worker->start();
  for (int step = 0; step < 1000; ++step) {
    for (std::size_t table = 0; table < 2; ++table) {
      worker->sync(table);
      std::vector<Real> gradient = weights[table];
      for (Real& value : gradient) value -= static_cast<Real>(own.worker);
      worker->update(table, std::span(gradient), kRate);
    }
    worker->clock(kRate);
  }
  worker->finish();
  std::printf("worker %zu of %zu: weights %.1f\n", own.worker, own.workers, static_cast<double>(weights[0].front()));
  bool is_mean = true;
  for (const auto& table : weights)
    for (const Real weight : table) is_mean = is_mean && std::abs(weight - 1) <= Real{0.2};
  return is_mean;
}

/// Trains on two servers and three workers in this process. The servers have the same catalogue as the workers.
template <class Real>
int train_in_this_process(syncopate::WorkerOptions options) {
  std::vector<std::unique_ptr<syncopate::Server>> servers;
  for (std::size_t index = 0; index < 2; ++index) {
    servers.push_back(
        syncopate::Server::start({.addresses = {"127.0.0.1:0"}, .index = index, .catalogue = options.catalogue}));
    options.servers.push_back(servers.back()->addresses().front());
  }
  options.workers = 3;
  std::vector<int> status(options.workers, 1);
  std::vector<std::thread> workers;
  for (std::size_t worker = 0; worker < options.workers; ++worker)
    workers.emplace_back([&, own = options, worker]() mutable {
      own.worker = worker;
      try {
        status[worker] = train<Real>(own) ? 0 : 1;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "worker %zu: %s\n", worker, error.what());
      }
    });
  for (std::thread& worker : workers) worker.join();
  for (std::size_t index = 0; index < 2; ++index)
    std::printf("server %zu keeps %zu bytes\n", index, static_cast<std::size_t>(servers[index]->status().kept_bytes));
  return status[0] + status[1] + status[2] > 0 ? 1 : 0;
}

/// A process of `syncopate run -n 3 --servers K --own-servers` is one worker or one server; otherwise this process is
/// all of them. Returns an exit status.
template <class Real = float>
int train_on_workers(syncopate::WorkerOptions options) try {
  if (serve(options.catalogue)) return 0;
  if (std::getenv("SYNCOPATE_SERVERS") == nullptr) return train_in_this_process<Real>(options);
  const syncopate::WorkerOptions place = syncopate::worker_from_environment();
  options.access = place.access;
  options.servers = place.servers;
  options.worker = place.worker;
  options.workers = place.workers;
  return train<Real>(options) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
