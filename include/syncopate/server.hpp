// The parameter server: tables of weights on servers, which workers update and read, each at its own pace.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/dtype.hpp"
#include "syncopate/log.hpp"
#include "syncopate/server_checkpoint.hpp"

namespace syncopate {

// In a library of its own, syncopate::server, because it needs gRPC. Servers and workers are processes of a job, but no
// ranks of a group: they come and go, and differ in speed.

/// How the ends of a job prove to each other that they belong to it.
struct JobAccess {
  std::string job = "syncopate";  ///< a name, the same everywhere
  /// The file of the job's secret, readable by its owner only. It may be left out where only this host can connect.
  std::string secret_file;
  /// PEM files for TLS, needed off this host: the job's own authority, and the certificate and key of this host.
  std::string authority, certificate, key;
  /// The other end is lost when nothing has come from it for so long; at least 100 ms.
  std::chrono::milliseconds silence{2'000};
};

/// From SYNCOPATE_JOB, _SECRET_FILE, _TLS_AUTHORITY, _TLS_CERTIFICATE, _TLS_KEY and _SILENCE_MS, as `syncopate run
/// --servers` sets them.
[[nodiscard]] JobAccess access_from_environment();

/// A host, for TLS between hosts: a name for its files, and what others call it: names and numeric addresses.
struct CertifiedHost {
  std::string name;
  std::vector<std::string> called;
};
/// Makes `folder`, for its owner alone, and in it `authority.pem` and for each host `NAME.pem` and `NAME-key.pem`. More
/// hosts need new certificates for all, because the authority's key is kept nowhere. Throws Misuse (a name that is not
/// allowed, a folder that exists), SystemFailure.
void make_certificates(const std::string& folder, const std::vector<CertifiedHost>& hosts, int days);

struct ServerOptions {
  /// Where to serve: "host:port" with a numeric host and 0 for any free port, or "@name" on this host.
  std::vector<std::string> addresses;
  std::size_t index = 0;         ///< of this server: which part of the tables it keeps
  std::size_t memory_bytes = 0;  ///< limit of what it keeps; 0: three quarters of the machine's memory
  /// A worker that is gone or silent for so long is waited for no more: the others' clocks go on without it.
  std::chrono::milliseconds patience{10'000};
  /// 1: server (index + 1) modulo their number keeps a replica of this one. This one acknowledges an update when the
  /// replica has it, and when this process is gone, another one with this index takes the replica over. Half of
  /// `memory_bytes` is for the replica that this server keeps of the one before it. 0: what it keeps is gone with it.
  int replicas = 0;
  std::vector<std::string> servers{};  ///< with a replica: the address of each, in the order of their indices
  /// Folder of snapshots, the same for all servers of the job; empty: none are written. Every `snapshot_every` steps
  /// of everybody each server writes what it keeps; a server that is started goes on from the newest step that all
  /// have. Without replicas.
  std::string snapshots{};
  std::int64_t snapshot_every = 100;
  JobAccess access{};
  Log log = log_from_environment();
};

struct ServerStatus {
  std::size_t workers = 0;                           ///< of the job; 0: none has come yet
  std::size_t connected = 0;                         ///< of these
  std::size_t finished = 0;                          ///< that have ended in order
  std::uint64_t kept_bytes = 0;                      ///< weights
  std::uint64_t replica_bytes = 0;                   ///< weights of the server before it
  bool keeps_replica = false;                        ///< of that one, whole: that one may die
  std::uint64_t received_bytes = 0, sent_bytes = 0;  ///< bodies of messages
  double processor_seconds = 0;                      ///< user and system time of its process so far
};

/// What the server at `address` says of itself. Throws as TableWorker::connect does.
[[nodiscard]] ServerStatus status_of(const std::string& address, const JobAccess& access);

/// One server of a job. The first worker says which tables there are; the others have to say the same.
class Server final {
 public:
  /// Serves from now on, on threads of its own. Throws Misuse (an address or a limit that is not allowed, no secret or
  /// certificates off this host), SystemFailure (an address that is taken).
  [[nodiscard]] static std::unique_ptr<Server> start(const ServerOptions& options);
  /// Stops serving; what it keeps is gone.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// As they were given, with the ports that were chosen.
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept;
  [[nodiscard]] ServerStatus status() const;
  /// Waits until every worker of the job has finished, or was given up, or the time is over. Returns whether they have.
  /// Throws what ended it otherwise: Mismatch, where another process has taken its place; Unauthorized.
  [[nodiscard]] bool wait_for_end(std::chrono::milliseconds time);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct WorkerOptions {
  std::vector<std::string> servers;  ///< the address of each, in the order of their indices
  std::size_t worker = 0, workers = 1;
  std::string placement = "uniform";  ///< a name from shelf server/placement
  std::string consistency = "bsp";    ///< a name from shelf server/consistency, with its parameter: "ssp:3"
  /// Of updates: a name from shelf compress/codec, with its parameter, whose packets can be decoded alone; and what
  /// becomes of what a packet leaves out: "auto", "none", "residual" (FeedbackOptions::kind).
  std::string codec = "none", feedback = "auto";
  /// Of the servers' answers: a codec as well. All workers follow the same packets, and what one leaves out comes in
  /// later ones; `finish` brings the weights as they are.
  std::string answers = "none";
  std::size_t dense_below = 4096;                                 ///< smaller tables travel as they are
  std::uint64_t seed = 0;                                         ///< of codecs that use random numbers
  std::string optimizer = "momentum";                             ///< a name from shelf optim/rule
  std::vector<std::pair<std::string, double>> hyperparameters{};  ///< as OptimizerOptions has them
  /// How long servers may be out of reach, at the beginning and later, before a call throws PeerLost; and how long a
  /// call waits for what they have to say.
  std::chrono::milliseconds timeout{120'000};
  JobAccess access{};
  Log log = log_from_environment();
};

/// From SYNCOPATE_SERVERS (addresses, separated by commas), SYNCOPATE_RANK and _SIZE (which worker this is),
/// _TIMEOUT_MS, and the job's access; the rest is left to the program. Throws Misuse for what is missing or not
/// allowed.
[[nodiscard]] WorkerOptions worker_from_environment();

/// What a worker has done so far.
struct WorkerStatistics {
  std::uint64_t pushed_bytes = 0, pulled_bytes = 0;  ///< bodies of messages
  std::int64_t stalest = 0;                          ///< in steps: own clock less the steps of everybody in its weights
  double mean_staleness = 0;
  std::uint64_t reconnections = 0;
};

/// One worker of a job, and its copies of the tables. Used by one thread. A worker at clock c has ended c steps:
///
///   for each table, front to back: sync(table); forward      for each table, back to front: backward; update(table, g)
///   clock()
///
/// Under a model with staleness s a step computes with all updates of everybody's first c - s steps and all its own.
/// Every failure is thrown by the call that meets it, and by all later ones.
class TableWorker final {
 public:
  /// Reaches every server. Throws Misuse, PeerLost, Unauthorized, Mismatch.
  [[nodiscard]] static std::unique_ptr<TableWorker> connect(const WorkerOptions& options);
  /// Leaves without a word: servers wait for it until their patience ends. See `finish`.
  ~TableWorker();
  TableWorker(const TableWorker&) = delete;
  TableWorker& operator=(const TableWorker&) = delete;

  /// A table for these weights: f32, in the program's memory, which the worker reads and writes in `start`, `update`
  /// and `sync`, and in lockstep (staleness 0) from `update` until `sync` returns. The same tables in the same order on
  /// every worker. `spared`: WeightTensor::spared. Returns its index. Throws Misuse after `start`.
  std::size_t create_table(std::string name, Buffer weights, bool spared = false);
  /// Every worker calls it. The servers take worker 0's weights; all workers hold them afterwards. A worker that comes
  /// after the others have begun goes on where they are. `earlier`: from `gather` of an earlier run, on every worker,
  /// also with another number of workers, servers or another placement: the first step is its `step`. Throws Mismatch
  /// where workers have other tables, options or steps, Misuse for the state of another optimizer.
  void start(KeptTables earlier = {});
  /// Between steps: sends what is left, and waits until everybody's updates of as many steps are on the servers.
  void flush();
  /// `flush`, and what the servers keep then; without lockstep the optimizer's state is this worker's own, and updates
  /// of later steps that have come by then are in the weights. Throws PeerLost where the others did not wait.
  [[nodiscard]] KeptTables gather();
  [[nodiscard]] KeptByCodec kept_by_codec();  ///< after `flush`
  void restore(const KeptByCodec& kept);      ///< after `start`; throws Misuse for other lengths
  /// Adds this worker's gradient of the present step to the table, with this learning rate; once a step. Does not wait
  /// for any server. The gradient is zero afterwards.
  void update(std::size_t table, Buffer gradient, double rate);
  /// Ends the step. Tables without an update have none in this step.
  void clock(double rate);
  /// Whether `sync` would return at once.
  [[nodiscard]] bool is_ready(std::size_t table);
  /// Waits until the table's weights are as fresh as the consistency model promises, and brings them up to date. Throws
  /// PeerLost, Timeout.
  void sync(std::size_t table);
  /// Ends in order: sends what is left, and waits until every table holds everybody's updates of as many steps. Workers
  /// that have ended the same steps end with the same bits.
  void finish();

  [[nodiscard]] std::int64_t steps() const noexcept;  ///< that have ended, or that it came too late for
  [[nodiscard]] WorkerStatistics statistics() const;

 private:
  class Impl;
  explicit TableWorker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
