// ServerShell: what a parameter server does when a stream comes, speaks or ends, and as time passes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/guarded.hpp"
#include "server/process/candidates.hpp"
#include "server/process/replica_keeper.hpp"
#include "server/process/replica_link.hpp"
#include "server/process/worker_slots.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate::server {

/// Has no threads, no sockets and no clock of its own, so that tests run it in virtual time. Thread-safe: streams call
/// it on their thread, and one other thread calls `turn`.
class ServerShell final {
 public:
  struct Options {
    std::size_t index = 0, servers = 1;
    std::size_t memory_bytes = 0;          ///< limit of the tables, and of the kept replica
    std::chrono::milliseconds patience{};  ///< with workers that are away
    base::Duration losing{};  ///< a stream whose other end is silent has ended within this time, however busy the host
    std::uint64_t process = 0;  ///< identifies this process; not 0
    syncopate::Log log{};
    Catalogue catalogue{};
    /// The address of the next server, which keeps the replica of this one; empty: there are no replicas.
    std::string keeper_address{};
  };
  /// `dial` connects to the next server; `turn` calls it. `ask`: called on any thread when `turn` has something to do,
  /// after the change that the turn is to find; it must not block or call this.
  ServerShell(Options options, ReplicaLink::Dialler dial, std::function<void()> ask,
              const std::shared_ptr<const base::Clock>& clock);

  /// The tables: before `begin` they may be restored.
  [[nodiscard]] ServerTables& tables() noexcept { return tables_; }
  /// That of the replica of the server before, if there are replicas.
  [[nodiscard]] std::optional<ReplicaKeeper>& replica_keeper() noexcept { return replica_keeper_; }

  /// Before the first stream: serves workers, or with replicas will do so when the link to the replica has joined.
  void begin();
  [[nodiscard]] streams::StreamEvents accept(std::unique_ptr<streams::Stream> stream);
  /// Outside callbacks of streams: gives up workers, seats candidates, dials, ends streams. Call it first, at the time
  /// that it returns, and after `ask`. An error ends the job; streams still end here afterwards, and workers are
  /// refused.
  [[nodiscard]] base::Time turn();
  /// This process ends; `turn` is not called afterwards.
  void end();

  [[nodiscard]] ServerStatus status() const;
  /// Waits until every worker has finished or was given up. Returns whether they have. Throws the error that has ended
  /// the job.
  [[nodiscard]] bool wait_for_end(std::chrono::milliseconds time) {
    return slots_.wait_for_end(time, [this] { return workers(); });
  }

 private:
  [[nodiscard]] std::size_t server_before() const { return (options_.index + options_.servers - 1) % options_.servers; }
  [[nodiscard]] bool has_replica() const noexcept { return !options_.keeper_address.empty(); }
  [[nodiscard]] std::size_t workers() const;
  [[nodiscard]] ServerTables::Forward to_replica();
  [[nodiscard]] streams::StreamEvents tell_status(std::unique_ptr<streams::Stream> stream);
  [[nodiscard]] streams::StreamEvents dismiss(std::unique_ptr<streams::Stream> stream, const std::string& why);
  void receive(const std::shared_ptr<Candidate>& from, Payload bytes);
  [[nodiscard]] std::optional<std::uint64_t> meet(const std::shared_ptr<Candidate>& candidate,
                                                  const WorkerMessage& first);
  void deliver(std::size_t worker, std::uint64_t life, const WorkerMessage& message);
  void fail(const std::exception& error);
  void leave(std::size_t worker);
  void open();
  [[nodiscard]] Refuse refusal(std::size_t worker, const Error& error) const;
  void lose(Candidate& candidate, const streams::Ending& ending);
  [[nodiscard]] base::Time admit_candidates();

  const Options options_;
  const std::function<void()> ask_;
  ServerTables tables_;
  base::Guarded<std::string> broken_;  ///< what a component of the catalogue threw; empty: nothing
  WorkerSlots slots_;
  Candidates candidates_;
  std::optional<ReplicaKeeper> replica_keeper_;  ///< of the previous server
  std::optional<ReplicaLink> replica_link_;      ///< to this server's replica
  bool is_whole_ = true;                         ///< no turn has failed
};

}  // namespace syncopate::server
