// Rank: one program of a job while it runs: its process, its lines, and how it ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launch/job/end.hpp"
#include "launch/job/lines.hpp"
#include "launch/job/supervise.hpp"
#include "launch/process/program.hpp"

namespace syncopate::tools::launch::job {

struct Rank {
  explicit Rank(const process::Program& of) : program(of) {}
  /// Its process, or another one in the place of the one that ended. Throws as process::start.
  void start();
  /// One buffer at most, so that a rank that writes without end cannot keep the others waiting. Returns whether there
  /// may be more.
  bool read(Stream stream, const LineSplitter::Sink& pass);
  /// The process and what it has left running in its group; nothing where there is no process.
  void kill_group() const;
  void reap();
  /// After the process has been killed by a signal, whether another one may take its place: one that dies as soon as it
  /// is started does not die of what others do.
  [[nodiscard]] bool may_start_again();

  const process::Program& program;
  process::Started process{};
  LineSplitter output{}, error{}, blame{};
  std::optional<RankEnd> end{};
  bool was_asked = false;  ///< to end, by a signal from here

 private:
  std::chrono::steady_clock::time_point since_{};  ///< of `process`
  int short_lives_ = 0;                            ///< one after the other
};

}  // namespace syncopate::tools::launch::job
