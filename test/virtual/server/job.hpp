// Job: servers and workers of a job in virtual time: production's server shells and tables, the test's workers.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/process/server_shell.hpp"
#include "server/process/worker_shell.hpp"
#include "virtual/server/machine.hpp"

namespace syncopate::server {

inline constexpr std::size_t kMemory = std::size_t{1} << 26;
inline constexpr std::chrono::milliseconds kPatience{1000};         ///< of servers with workers that are away
inline constexpr std::chrono::milliseconds kWorkerTimeout{60'000};  ///< of workers with servers that are out of reach

struct Job;

class WorldClock final : public base::Clock {
 public:
  explicit WorldClock(const World& world) : world_(world) {}
  [[nodiscard]] Time now() const override { return world_.now(); }

 private:
  const World& world_;
};

class ServerProcess final {
 public:
  ServerProcess(Job& job, std::size_t index);
  ~ServerProcess();
  [[nodiscard]] ServerTables& tables() { return shell.tables(); }
  void cut_replication();

  Machine machine;              ///< destroyed last
  const std::uint64_t process;  ///< identifies this process
  ServerShell shell;

 private:
  [[nodiscard]] static std::size_t keeper_of(const Job& job, std::size_t index);
  void look();
  void use_snapshots();

  Job& job_;
  const std::size_t index_;
  bool has_failed_ = false;
};

/// A worker whose program makes `steps` steps, in events.
class WorkerProcess final {
 public:
  /// `host`: of its machine, which no other process has.
  WorkerProcess(Job& job, std::size_t index, std::size_t host, Clock steps);
  ~WorkerProcess();
  void start();
  void die();
  void cut(std::size_t server);
  [[nodiscard]] bool is_dead() const { return is_dead_; }
  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] bool is_refused() const;  ///< because another process has taken its place
  [[nodiscard]] Clock clock() const { return shell.has_tables() ? tables().clock() : 0; }

  [[nodiscard]] WorkerTables& tables() const { return shell.tables(); }

  Machine machine;  ///< destroyed last
  std::vector<std::vector<float>> weights;
  WorkerShell shell;
  Clock made = 0;  ///< steps whose updates it sent
  bool has_finished = false, has_begun = false;
  std::string failure;
  std::vector<std::map<std::uint64_t, std::uint64_t>> pushed;  ///< times that it pushed each row, by table
  /// As `pushed`, by table and the step in which it did.
  std::vector<std::map<Clock, std::map<std::uint64_t, std::uint64_t>>> pushed_in;

 private:
  class Watched;
  /// Pending requests of each of a server's blocks on the current stream.
  using Pending = std::map<std::uint32_t, int>;
  [[nodiscard]] std::vector<Buffer> buffers();
  [[nodiscard]] WorkerShell::Options options() const;
  void dial(std::size_t server, streams::DialEvents events);
  void note_sent(std::size_t server, base::ConstBytes head);
  void note_received(std::size_t server, const Payload& bytes);
  void look();
  void go_on();
  void compute();
  void push_rows();
  void pull_rows(std::size_t table);
  [[nodiscard]] bool are_pulled();
  [[nodiscard]] bool has_visited();

  Job& job_;
  const std::size_t index_;
  const Clock steps_;
  std::vector<Pending> pending_;  ///< by server
  /// Fetches of each of a server's blocks on the current stream, at the clock of the last one.
  std::vector<std::map<std::uint32_t, std::pair<Clock, int>>> fetches_;
  std::uint64_t seen_ = 0;  ///< arrivals
  bool computes_ = false, is_held_ = false, is_dead_ = false;
  std::optional<std::size_t> pulled_;  ///< the table of rows of the pull that is under way
  enum class Visit { none, begun, ended } visit_ = Visit::none;
  Clock visited_ = 0;                       ///< the number of steps at the last visit
  std::vector<std::uint64_t> ids_;          ///< of the pull
  std::vector<float> rows_;                 ///< of the pull
  std::vector<std::uint64_t> pushed_then_;  ///< times that this worker had pushed each of its ids
};

/// An accident of a worker's process that has begun: at `at_s` it stops for `for_s`, or dies if that is 0.
struct Accident {
  double at_s = 0, for_s = 0;
  double replaced_s = 0;  ///< this time after it another process starts as that worker; 0: none does
};

/// A job that a test states instead of drawing it.
struct JobOptions {
  Setup setup{};
  Clock steps = 1;
  std::uint64_t seed = 1;
  /// Empty: element i belongs to worker i mod N, whose every step adds 1 to it.
  std::function<void(std::size_t worker, Clock step, std::size_t table, std::span<float> gradient)> gradient{};
  std::function<double(std::size_t worker, Clock step)> compute_s{};  ///< empty: 1 to 60 ms
  double break_every_s = 0, kill_every_s = 0;  ///< mean time between breaks of any stream, and kills of any server
  double rate = 1;
  // Tables of rows, if there are any, begin with zero: every step adds 1 to some rows of each, and reads rows of one.
  /// Called before a worker computes a step, with its weights.
  std::function<void(std::size_t worker, Clock step, std::span<const std::vector<float>> weights)> reads{};
  std::map<std::size_t, Accident> accidents{};  ///< by worker
  Clock visit_every = 0;  ///< workers visit the first table of rows each time after this number of steps; 0: never
  Clock image_every = 0;  ///< servers take images of this number of steps, as for snapshots; 0: none
};

/// The content of a snapshot folder: the images of each server's blocks, by step, server and piece.
using Snapshots = std::map<Clock, std::map<std::size_t, std::map<std::size_t, Payload>>>;

struct Job {
  Job(std::uint64_t seed, bool prints);
  explicit Job(const JobOptions& stated);
  /// Until all workers have finished or died, and 3 s longer, but at most to the bound.
  void run(Duration bound = std::chrono::hours(3));
  [[nodiscard]] bool has_finished(std::size_t worker) const { return workers[worker]->has_finished; }
  [[nodiscard]] const std::vector<std::vector<float>>& weights(std::size_t worker) const {
    return workers[worker]->weights;
  }
  [[nodiscard]] Clock clock(std::size_t worker) const { return workers[worker]->clock(); }
  [[nodiscard]] double now_s() const { return base::seconds(world.now().time_since_epoch()); }

  const JobOptions options;
  World world;
  virtual_world::Network network;
  Setup setup;
  JobRules rules;
  int replicas = 0;
  Clock steps = 0;
  std::vector<std::unique_ptr<ServerProcess>> servers;  ///< null: killed
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  std::vector<std::unique_ptr<WorkerProcess>> replaced;  ///< processes that were workers: dead, or stopped
  std::vector<std::unique_ptr<WorkerProcess>> ended;     ///< workers before the whole job was restarted
  Clock snapshot_every = 0;                              ///< 0: no snapshots are taken
  Snapshots snapshots;
  bool is_restarted = false;
  Clock begun_at = 0;  ///< the step from which the whole job went on
  std::vector<std::string> broken;
  std::string scenario;
  std::uint64_t pushes = 0, breaks = 0, kills = 0, images = 0;
  bool may_give_up = false;                               ///< a fault of this history can outlast the patience
  std::map<Clock, std::vector<std::vector<float>>> seen;  ///< in lockstep: the weights of each step

  void draw_faults();
  void repeat(double every_s, void (Job::*fault)());
  void compute_gradient(std::size_t worker, std::size_t table, std::span<float> gradient) const;
  [[nodiscard]] Duration compute_time(std::size_t worker);
  [[nodiscard]] bool is_over() const;
  /// Pushes of a row so far, in steps before `step`: by all processes; `steady`: of the workers without an accident.
  [[nodiscard]] std::uint64_t pushes_before(Clock step, std::size_t table, std::uint64_t id, bool steady = false) const;
  [[nodiscard]] std::uint64_t pushes_of(std::size_t table, std::uint64_t id) const {
    return pushes_before(std::numeric_limits<Clock>::max(), table, id);
  }
  void check_image(std::size_t server, const ServerTables::Image& image);
  void check_read(std::size_t worker);
  void check_end();
  void kill_server();
  void restart_all();
  void begin_again();
  void keep_image(std::size_t server, ServerTables::Image image);
  [[nodiscard]] Clock newest_in_common() const;
  void break_stream();
  void break_replication();
  void make_processes();
  void make_accident(std::size_t worker, const Accident& accident);
  void replace(std::size_t worker);
  [[nodiscard]] std::vector<const WorkerProcess*> processes() const;  ///< with the replaced ones
  void law(std::string text) { broken.push_back(std::move(text)); }
};

struct ServerHistory {
  std::string scenario;
  std::uint64_t digest = 0;
  std::vector<std::string> broken;
};
[[nodiscard]] ServerHistory server_history_of(std::uint64_t seed, bool prints = false);

}  // namespace syncopate::server
