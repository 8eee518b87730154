// SnapshotFolder: the snapshots of all servers of a job: names, which are kept, and from which a job resumes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/snapshot/snapshot_file.hpp"
#include "syncopate/log.hpp"

namespace syncopate::server {

/// `FOLDER/server<I>.step<N>.snapshot`. All servers of a job use the same folder; each writes its own files, and reads
/// all files once, when it begins: so all choose the same step without communication. Law: no server writes before all
/// have chosen, because a job's clocks move only when all its servers serve.
class SnapshotFolder final {
 public:
  /// Makes the folder if it is missing, and removes unfinished files of a killed process of this server. Throws
  /// SystemFailure.
  SnapshotFolder(std::string folder, std::size_t server, syncopate::Log log);

  /// The newest step of which every server has a whole file of the same setup. Logs damaged files, and warns if there
  /// are files of this server and no such step. Throws SystemFailure if the folder cannot be read.
  [[nodiscard]] std::optional<Snapshot> newest_in_common() const;
  /// Throws SystemFailure; older files then remain. Afterwards this server's files are the newest two of this run
  /// (including `goes_on_from`); files of abandoned runs are removed.
  void write(const Snapshot& snapshot);
  void goes_on_from(Clock step) { kept_ = {step}; }
  [[nodiscard]] std::string file_of(std::size_t server, Clock step) const;

 private:
  void remove_drafts() const;
  [[nodiscard]] std::vector<Clock> steps_of(std::size_t server) const;  ///< newest first
  [[nodiscard]] std::optional<Snapshot> whole(std::size_t server, Clock step) const;
  [[nodiscard]] bool others_have(const Snapshot& own) const;

  const std::string folder_;
  const std::size_t server_;
  const syncopate::Log log_;
  std::vector<Clock> kept_;  ///< newest last
};

}  // namespace syncopate::server
