// SnapshotWriter: gathers the images of a server's blocks, and writes them on its own thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "server/snapshot/snapshot_folder.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate::server {

/// Thread-safe. Memory is bounded: at most two steps are gathered, one waits, one is written; older ones are dropped.
/// If several writes in a row fail, only the first failure is logged; older files remain.
class SnapshotWriter final {
 public:
  SnapshotWriter(SnapshotFolder folder, std::size_t server, syncopate::Log log);
  ~SnapshotWriter();  ///< writes the waiting snapshot
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  /// Called with the block's lock held: does not wait for a disk.
  void take(ServerTables::Image image);

 private:
  struct Gathered {
    Snapshot snapshot;
    std::size_t left = 0;  ///< blocks whose image has not come
  };
  void run(const std::stop_token& stop);
  void write(const Snapshot& snapshot);

  SnapshotFolder folder_;
  const std::size_t server_;
  const syncopate::Log log_;
  std::mutex mutex_;
  std::condition_variable_any due_;
  std::map<Clock, Gathered> gathered_;
  std::optional<Snapshot> waiting_;
  bool has_failed_ = false;
  std::jthread thread_;
};

}  // namespace syncopate::server
