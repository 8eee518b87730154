// Cluster: workers and servers of a job in virtual time, with links that delay, break and come back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"

namespace syncopate::server {

struct ClusterOptions {
  Setup setup;
  Clock steps = 1;
  std::uint64_t seed = 1;
  /// The gradient of a worker's step.
  std::function<void(std::size_t worker, Clock step, std::size_t table, std::span<float> gradient)> gradient;
  std::function<double(std::size_t worker, Clock step)> compute_s;
  double break_every_s = 0;  ///< mean time between breaks of any link; 0: none breaks
  double rate = 1;
  /// What a worker computes a step with, before it does.
  std::function<void(std::size_t worker, Clock step, std::span<const std::vector<float>> weights)> reads =
      [](auto&&...) {};
  std::vector<double> dies_s{};  ///< by worker; it says nothing from then on, and the servers learn it a second later
};

/// The cores of server/table, unchanged. A link carries messages in order, each after a delay of 0 to 20 ms; a link
/// that breaks loses what is under way in both directions, and comes back within 50 ms.
class Cluster final {
 public:
  explicit Cluster(const ClusterOptions& options);
  ~Cluster();

  /// Until nothing happens any more.
  void run();
  /// All updates of everybody are in, and the worker has read them.
  [[nodiscard]] bool has_finished(std::size_t worker) const;
  [[nodiscard]] const std::vector<std::vector<float>>& weights(std::size_t worker) const;
  [[nodiscard]] Clock clock(std::size_t worker) const;
  [[nodiscard]] double now_s() const noexcept { return now_s_; }
  [[nodiscard]] std::uint64_t pushes() const noexcept { return pushes_; }
  [[nodiscard]] std::uint64_t breaks() const noexcept { return breaks_; }

 private:
  struct Worker;
  struct Link {
    std::uint64_t life = 0;  ///< of a stream; what was sent in another one is lost
    bool is_up = true;
    bool is_welcome = false;  ///< until then a worker says nothing but its setup
    double last_s[2] = {0, 0};
  };

  void after(double seconds, std::function<void()> happens);
  void travel(std::size_t worker, std::size_t server, int direction, std::function<void()> arrives);
  void to_server(std::size_t worker, Request request);
  void to_worker(std::size_t server, Outgoing outgoing);
  void heard(std::size_t worker, std::size_t server, Message message);
  void go_on(std::size_t worker);
  void compute(std::size_t worker);
  void break_link();
  void reconnect(std::size_t worker, std::size_t server);
  void die(std::size_t worker);
  [[nodiscard]] double random(double most) { return std::uniform_real_distribution(0.0, most)(random_); }

  const ClusterOptions options_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<ServerTables>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::pair<std::size_t, std::size_t>, Link> links_;
  std::multimap<double, std::function<void()>> events_;
  double now_s_ = 0;
  std::uint64_t pushes_ = 0, breaks_ = 0;
};

}  // namespace syncopate::server
