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
  /// Called before a worker computes a step, with its weights.
  std::function<void(std::size_t worker, Clock step, std::span<const std::vector<float>> weights)> reads =
      [](auto&&...) {};
  std::vector<double> dies_s{};  ///< by worker; it is silent from then on, and the servers notice a second later
  double kill_every_s = 0;       ///< mean time between kills of any server, which another replaces; 0: no replicas
};

inline constexpr std::size_t kMemory = std::size_t{1} << 30;  ///< of a server

/// The cores of server/table, unchanged. A link carries messages in order, each after a delay of 0 to 20 ms; a link
/// that breaks loses the messages in flight in both directions, and comes back within 50 ms. Server i's replica is at
/// server i + 1; a server is killed when all are up and have their replicas.
class Cluster final {
 public:
  explicit Cluster(const ClusterOptions& options);
  ~Cluster();

  /// Runs until no event is left.
  void run();
  /// Whether all updates of every worker are in, and the worker has read them.
  [[nodiscard]] bool has_finished(std::size_t worker) const;
  [[nodiscard]] const std::vector<std::vector<float>>& weights(std::size_t worker) const;
  [[nodiscard]] Clock clock(std::size_t worker) const;
  [[nodiscard]] double now_s() const noexcept { return now_s_; }
  [[nodiscard]] std::uint64_t pushes() const noexcept { return pushes_; }
  [[nodiscard]] std::uint64_t breaks() const noexcept { return breaks_; }
  [[nodiscard]] std::uint64_t kills() const noexcept { return kills_; }

 private:
  struct Worker {
    std::vector<std::vector<float>> weights{};
    std::unique_ptr<WorkerTables> tables{};
    std::size_t welcomes = 0;
    Clock others = 0;  ///< the newest step of any worker, as servers reported when a stream came back
    bool computes = false, has_begun = false, has_finished = false, is_dead = false;
    bool is_gone = false;  ///< servers know that it has died
  };
  struct Link {
    std::uint64_t life = 0;  ///< of a stream; messages of another stream are lost
    bool is_up = true;
    bool is_welcome = false;  ///< before it a worker sends only its setup
    double last_s[2] = {0, 0};
  };

  void after(double seconds, std::function<void()> happens);
  void travel(Link& link, int direction, std::function<void()> arrives);
  void to_server(std::size_t worker, Request request);
  void to_worker(std::size_t server, Outgoing outgoing);
  void heard(std::size_t worker, std::size_t server, Message message);
  void go_on(std::size_t worker);
  void compute(std::size_t worker);
  void break_link();
  void reconnect(std::size_t worker, std::size_t server);
  void die(std::size_t worker);
  [[nodiscard]] bool goes_on() const;
  [[nodiscard]] bool has_begun() const;  ///< every worker has

  // Servers that die (cluster_servers.cpp).
  [[nodiscard]] std::unique_ptr<ServerTables> made(std::size_t server);
  void forward(std::size_t server, const Record& record);
  void follow(std::size_t server);
  void break_replication();
  void kill_server();
  void replace(std::size_t server);
  [[nodiscard]] std::size_t before(std::size_t server) const {
    return (server + servers_.size() - 1) % servers_.size();
  }
  [[nodiscard]] double random(double most) { return std::uniform_real_distribution(0.0, most)(random_); }

  const ClusterOptions options_;
  std::mt19937_64 random_;
  struct Replica {
    std::unique_ptr<ServerTables> tables{};
    std::uint64_t has = 0;
    Link link{};
  };

  std::vector<std::unique_ptr<ServerTables>> servers_;  ///< null: killed
  std::vector<Replica> replicas_;                       ///< of each server
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::pair<std::size_t, std::size_t>, Link> links_;
  std::multimap<double, std::function<void()>> events_;
  double now_s_ = 0;
  std::uint64_t pushes_ = 0, breaks_ = 0, kills_ = 0;
};

}  // namespace syncopate::server
