// SnapshotFolder: the snapshots of all servers of a job: names, which are kept, and from which a job resumes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/snapshot/snapshot_file.hpp"
#include "syncopate/log.hpp"

namespace syncopate::server {

/// Most files of a server that are newer than the newest common step. While the slowest server waits for a disk and
/// writes a multiple of 2^k intervals (is_rounder), the others pass at most two further ones.
inline constexpr std::size_t kMostAhead = 4;

/// `FOLDER/server<I>.step<N>.snapshot`. A server without blocks and rows has no files, and counts as having all steps.
/// All servers of a job use the same folder; each writes and removes its own
/// files, and reads all files once, when it begins: so all choose the same step without messages. No server writes
/// before all have chosen, because a job's clocks move only when all its servers serve. Law: the newest step of which
/// all servers have had a file at the same time stays, because a server removes only files that are older than a common
/// step, or that no common step can use any more (`kMostAhead`). Thread-safe.
class SnapshotFolder final {
 public:
  /// Makes the folder if it is missing, and removes unfinished files of a killed process of this server. Throws
  /// SystemFailure.
  SnapshotFolder(std::string folder, std::size_t server, syncopate::Log log);

  /// The newest step of which every server has a whole file of the same setup. Logs damaged files, and warns if there
  /// are files of this server and no such step. Throws SystemFailure if the folder cannot be read.
  [[nodiscard]] std::optional<Snapshot> newest_in_common() const;
  /// The job begins from this step, 0 or that of `newest_in_common`, and all servers have chosen: sets aside this
  /// server's files of later steps, which belong to a run that is abandoned, so that no step has files of two runs. The
  /// next `write` removes them. A failure is logged.
  void begin(Clock step) const;
  /// Throws SystemFailure; older files then remain. Afterwards this server has files of the newest two steps of which
  /// every server has one, and the roundest `kMostAhead` (is_rounder) of its own newer steps.
  void write(const Snapshot& snapshot) const;
  [[nodiscard]] std::string file_of(std::size_t server, Clock step) const;

 private:
  void remove(std::string_view ending) const;
  void remove_old(std::span<const std::size_t> writers) const;
  [[nodiscard]] bool is_common(Clock step, std::span<const std::size_t> writers) const;
  [[nodiscard]] std::vector<std::pair<std::size_t, Clock>> files() const;  ///< server and step, newest first
  [[nodiscard]] std::vector<Clock> own_steps() const;                      ///< newest first
  [[nodiscard]] std::optional<Snapshot> empty_in_common() const;
  [[nodiscard]] std::optional<Snapshot> whole(std::size_t server, Clock step) const;
  [[nodiscard]] bool others_have(const Snapshot& own) const;

  const std::string folder_;
  const std::size_t server_;
  const syncopate::Log log_;
};

}  // namespace syncopate::server
