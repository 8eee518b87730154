// SnapshotWriter: gathers the images of a server's blocks and tables of rows, and writes them on its own thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "base/mutex.hpp"
#include "server/snapshot/snapshot_file.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate::server {

/// Thread-safe. Memory is bounded: at most two steps are gathered, one waits, one is written; of further ones the less
/// round are dropped (is_rounder), so that all servers write common steps. Images of rows share the tables' memory.
/// If several writes in a row fail, only the first failure is logged; older files remain.
class SnapshotWriter final {
 public:
  using Write = std::function<void(const Snapshot&)>;
  /// `write` may throw an Error; it is called on the writer's thread.
  SnapshotWriter(Write write, std::size_t server, syncopate::Log log);
  ~SnapshotWriter();  ///< writes the waiting snapshot
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  /// Called with the lock of the block or table held: does not wait for a disk.
  void add(ServerTables::Image image);

 private:
  struct Gathered {
    Snapshot snapshot;
    std::vector<std::vector<Payload>> pieces{};  ///< of each, the parts of its image
    std::size_t left = 0;                        ///< pieces whose image has not come
  };
  void run(const std::stop_token& stop);
  void write(const Snapshot& snapshot);

  const Write write_;
  const std::size_t server_;
  const syncopate::Log log_;
  base::Mutex mutex_;
  base::Condition due_;
  std::map<Clock, Gathered> gathered_ SYNCOPATE_GUARDED_BY(mutex_);
  std::optional<Snapshot> waiting_ SYNCOPATE_GUARDED_BY(mutex_);
  bool has_failed_ = false;  ///< of `thread_`
  std::jthread thread_;
};

}  // namespace syncopate::server
