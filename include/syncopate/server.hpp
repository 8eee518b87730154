// The parameter server: tables of weights on servers, which workers update and read, each at its own pace.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/catalogue.hpp"
#include "syncopate/coding.hpp"
#include "syncopate/dtype.hpp"
#include "syncopate/group.hpp"
#include "syncopate/log.hpp"
#include "syncopate/server_checkpoint.hpp"
#include "syncopate/server_rows.hpp"

namespace syncopate {

// Servers and workers are processes of a job but not ranks of a group: they may join and leave at any time, and their
// speeds differ.

/// Credentials by which the processes of a job authenticate each other.
struct JobAccess {
  std::string job = "syncopate";  ///< the job's name, equal in all its processes
  /// File with the job's secret, readable only by its owner. May be empty if only this host can connect.
  std::string secret_file;
  /// Encrypts connections between hosts by TLS 1.3 with keys made from the secret, which it needs; automatic: those to
  /// public addresses. Equal in all processes of the job.
  TlsChoice tls = TlsChoice::automatic;
  /// The other end of a stream is lost if nothing arrives from it for this long; at least 100 ms.
  std::chrono::milliseconds silence{2'000};
};

/// Reads SYNCOPATE_JOB, _SECRET_FILE, _TLS and _SILENCE_MS, which `syncopate run
/// --servers` sets.
[[nodiscard]] JobAccess access_from_environment();

struct ServerOptions {
  /// Addresses to listen on: "host:port" with a numeric host and port 0 for any free port, or "@name" for this host
  /// only.
  std::vector<std::string> addresses;
  std::size_t index = 0;         ///< of this server; determines its part of the tables
  std::size_t memory_bytes = 0;  ///< limit of the data it holds; 0: three quarters of the machine's memory
  /// A worker that is gone or silent for this long is given up: the clocks of the others advance without it.
  std::chrono::milliseconds patience{10'000};
  /// 1: server (index + 1) modulo the number of servers holds a replica of this one. This server acknowledges an update
  /// when the replica has it. After this process ends, a new process with the same index recovers from the replica.
  /// Half of `memory_bytes` is for the replica that this server holds of its predecessor. 0: no replica; the data are
  /// lost with the process.
  int replicas = 0;
  std::vector<std::string> servers{};  ///< required with replicas: all addresses in the order of indices
  /// Folder of snapshots, the same for all servers of the job; empty: none are written. Each time all workers have
  /// completed `snapshot_every` more steps, each server writes its state. A restarted server continues from the newest
  /// step that all servers have. Excludes replicas.
  std::string snapshots{};
  std::int64_t snapshot_every = 100;
  Catalogue catalogue{};  ///< must have the entries that the workers name
  JobAccess access{};
  Log log{};
};

/// For a program that is also a server of its job, with its own catalogue: `syncopate run --servers K --own-servers`
/// starts K such processes, with the server's index in SYNCOPATE_SERVER and its addresses in SYNCOPATE_LISTEN. Empty:
/// this process is a worker. Throws Misuse for an invalid value.
[[nodiscard]] std::optional<ServerOptions> server_from_environment();

struct ServerStatus {
  std::size_t workers = 0;          ///< of the job; 0: none has connected yet
  std::size_t connected = 0;        ///< of these
  std::size_t finished = 0;         ///< that have called TableWorker::finish
  std::uint64_t kept_bytes = 0;     ///< weights, and rows with their state
  std::uint64_t replica_bytes = 0;  ///< of the predecessor's replica
  bool keeps_replica = false;       ///< the replica is complete
  bool serves = false;              ///< it has its tables, restored from its replica if it replaces another process
  std::uint64_t received_bytes = 0, sent_bytes = 0;  ///< message bodies
  double processor_seconds = 0;                      ///< user and system time of its process so far
};

/// Requests the status of the server at `address`. Throws as TableWorker::connect does.
[[nodiscard]] ServerStatus status_of(const std::string& address, const JobAccess& access);

/// One server of a job. The first worker defines the tables; the others must define the same ones.
class Server final {
 public:
  /// Starts serving on its own threads. Throws Misuse (an invalid address or limit; no secret although other hosts can
  /// connect), SystemFailure (an address in use).
  [[nodiscard]] static std::unique_ptr<Server> start(const ServerOptions& options);
  /// Stops serving and discards its data.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// ServerOptions::addresses with the chosen ports.
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept;
  [[nodiscard]] ServerStatus status() const;
  /// Waits for at most `time` until every worker of the job has finished or was given up; returns whether they have. If
  /// serving ended with an error, throws it: Mismatch (another process has taken this server's place), Unauthorized.
  [[nodiscard]] bool wait_for_end(std::chrono::milliseconds time);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct WorkerOptions {
  /// Where placement, consistency, storage, codecs and optimizer are looked up. Workers and servers need the same
  /// entries.
  Catalogue catalogue{};
  std::vector<std::string> servers;  ///< all addresses in the order of indices
  std::size_t worker = 0, workers = 1;
  std::string placement = "uniform";  ///< a name from shelf server/placement
  std::string consistency = "bsp";    ///< a name from shelf server/consistency, with its parameter: "ssp:3"
  std::string storage = "plain";      ///< a name from shelf server/storage, with its parameter
  /// Coding of the updates, for which tables are the gradients; each packet of the codec must be decodable without
  /// others. A codec that codes only some shapes, as low_rank, gets blocks of whole rows: where a placement divides a
  /// row, the next server gets all of it. Feedback momentum: the optimizer's momentum (that of momentum or nesterov,
  /// and not FeedbackOptions') is accumulated before the codec selects; in lockstep in the codec's state, else in the
  /// worker's own optimizer, whose velocity becomes zero where something was sent.
  CodingOptions coding{};
  /// Codec of the servers' answers, without a state of its own. All workers decode the same packets; later packets
  /// carry what earlier ones left out. `finish` delivers the exact weights.
  std::string answers = "none";
  /// The order in which a step's updates and weights travel. "front_first": an update leaves when its gradient is
  /// ready, `sync` waits for its own table, and what waits to be sent leaves in the order of the tables. "wait_free":
  /// the same, first come, first served. "traditional": all updates leave in `clock`, and the step's first `sync` waits
  /// for all tables. In lockstep all three end in the same bits.
  std::string flow = "front_first";
  std::string optimizer = "momentum";                             ///< a name from shelf optim/rule
  std::vector<std::pair<std::string, double>> hyperparameters{};  ///< as in OptimizerOptions
  /// How long servers may be unreachable, at the start and later, before a call throws PeerLost; also how long a call
  /// waits for their answers.
  std::chrono::milliseconds timeout{120'000};
  JobAccess access{};
  Log log{};
  /// Called about ten times a second while a call of TableWorker waits for servers, on the waiting thread; not during
  /// `connect`. An interpreter handles its signals there. An exception that it throws ends the wait; the same call may
  /// be repeated, except `start`. Empty: not called.
  std::function<void()> while_waiting{};
};

/// Reads SYNCOPATE_SERVERS (comma-separated addresses), SYNCOPATE_RANK and _SIZE (the worker's index and the number of
/// workers), _TIMEOUT_MS, and access_from_environment(). Other fields keep their defaults. Throws Misuse for a missing
/// or invalid value.
[[nodiscard]] WorkerOptions worker_from_environment();

/// Counts of a worker since it connected.
struct WorkerStatistics {
  std::uint64_t pushed_bytes = 0, pulled_bytes = 0;  ///< message bodies
  std::int64_t stalest = 0;  ///< in steps: its clock minus the steps of all workers that its weights contain
  double mean_staleness = 0;
  std::uint64_t reconnections = 0;
};

/// One worker of a job, and its copies of the tables. Used by one thread. A worker at clock c has completed c steps:
///
///   for each table, front to back: sync(table); forward      for each table, back to front: backward; update(table, g)
///   clock()
///
/// Under a model with staleness s a step computes with the updates of all workers' first c - s steps and with all its
/// own. A failure is thrown by the call that detects it and by all later calls.
class TableWorker final {
 public:
  /// Connects to every server. Throws Misuse, PeerLost, Unauthorized, Mismatch.
  [[nodiscard]] static std::unique_ptr<TableWorker> connect(const WorkerOptions& options);
  /// Disconnects. Without `finish`, servers wait for the worker until their patience ends.
  ~TableWorker();
  TableWorker(const TableWorker&) = delete;
  TableWorker& operator=(const TableWorker&) = delete;

  /// Creates a table for these weights in the program's memory. The worker reads and writes them in `start`, `update`
  /// and `sync`; in lockstep (staleness 0) weights of f32 also between `update` and the return of `sync`. Servers keep
  /// f32; of weights of f16 or bf16, or in memory that a storage loads (Storages::load), the worker has a copy of f32,
  /// from which it rounds. Every worker
  /// creates the same tables in the same order. `spared`: WeightTensor::spared. `rows`: Gradient::rows. Returns the
  /// table's index. Throws Misuse after `start`.
  std::size_t create_table(std::string name, Buffer weights, bool spared = false, std::size_t rows = 0);
  /// Creates a table of rows. Every worker creates the same ones in the same order; tables and tables of rows are
  /// counted apart. Returns its index. Throws Misuse for options that are not allowed, and after `start`.
  std::size_t create_rows(const RowOptions& options);
  /// Every worker calls it. The servers adopt worker 0's weights; all workers hold them afterwards. A worker that
  /// starts later than the others continues from their current state. `earlier`: the result of `gather` in an earlier
  /// run, passed by every worker; the first step is then its `step`. The numbers of workers and servers and the
  /// placement may differ from that run. Throws Mismatch if workers differ in tables, options or steps, Misuse for the
  /// state of another optimizer.
  void start(KeptTables earlier = {});
  /// Call it between steps. Sends pending updates, and waits until the servers have all workers' updates of the same
  /// number of steps, and this worker's pushes of rows.
  void flush();
  /// Calls `flush` and returns the servers' state, without tables of rows (`visit_rows`). Without lockstep the
  /// optimizer's state is this worker's own, and the weights may include updates of later steps. Throws PeerLost if the
  /// other workers did not wait.
  [[nodiscard]] KeptTables gather();
  [[nodiscard]] KeptByCodec kept_by_codec();  ///< after `flush`
  void restore(const KeptByCodec& kept);      ///< after `start`; throws Misuse for other lengths
  /// Adds this worker's gradient of the current step to the table, with this learning rate; once a step. It may have
  /// another of the types of weights. Does not wait for a server. Sets the gradient to zero.
  void update(std::size_t table, Buffer gradient, double rate);
  /// Ends the step. A table without a call of `update` has no gradient in this step; `rate` applies to it.
  void clock(double rate);
  /// Whether `sync` would return at once.
  [[nodiscard]] bool is_ready(std::size_t table);
  /// Waits until the table's weights are as fresh as the consistency model requires, and updates the program's copy.
  /// Throws PeerLost, Timeout.
  void sync(std::size_t table);
  /// Waits for the rows of these ids, and copies them to `rows`: options.width floats for each id, in their order.
  /// They contain all this worker's pushes before the call, and those of others that the servers had. Ids may repeat.
  /// Throws Misuse for another table or length, PeerLost, Timeout.
  void pull_rows(std::size_t table, std::span<const std::uint64_t> ids, std::span<float> rows);
  /// For each id, one step of the table's rule with this rate and the sum of the id's gradients, on the server and on
  /// arrival: N workers that push a row make N steps of it. Every push is applied once, also if streams break or a
  /// server is replaced by its replica. Returns when the gradients are copied; it waits only while 32 MiB of earlier
  /// pushes are on their way. Throws Misuse as `pull_rows`; a server without memory for more rows makes this or a later
  /// call throw Misuse.
  void push_rows(std::size_t table, std::span<const std::uint64_t> ids, std::span<const float> gradients, double rate);
  /// Passes to `take` all rows of the table that were ever pushed, once each, in parts of at most 256 KiB or one row;
  /// `take` may be empty. Every worker calls it at the same point of its program: the rows are those after all calls of
  /// `push_rows` before it, of all workers, and each call returns when all workers' visits have ended. A worker that
  /// the servers have given up is not waited for. Throws Misuse as `pull_rows`, PeerLost, Timeout, and what `take`
  /// throws; a call that throws counts as made.
  void visit_rows(std::size_t table, const std::function<void(const KeptRows&)>& take);
  /// Loads rows that `visit_rows` passed to `take`, also in a job with another number of workers or servers. The
  /// servers leave a row that they have as it is, so that every worker may restore the same rows: each calls it for all
  /// rows, after `start` and before it pulls or pushes. Waits and throws as `push_rows`; Misuse for rows of another
  /// rule or lengths that do not fit.
  void restore_rows(std::size_t table, const KeptRows& rows);
  /// Ends the worker: sends pending updates, and waits until every table holds all workers' updates of the same number
  /// of steps. Workers with the same number of steps end with bitwise equal weights. Later calls throw Misuse.
  void finish();

  [[nodiscard]] std::int64_t steps() const noexcept;  ///< completed, or missed because it started late
  [[nodiscard]] WorkerStatistics statistics() const;

 private:
  class Impl;
  explicit TableWorker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
