// Supervision: runs a set of programs to their common end, with their output in whole lines and no leftovers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/program.hpp"

namespace syncopate::tools::launch {

enum class Stream : std::uint8_t {
  output,
  error,
  progress,  ///< rank 0's line in the making, to be overwritten by the next
};

struct Line {
  int rank = 0;
  Stream stream = Stream::output;
  std::string_view text;  ///< without '\n'; valid during the call
};
using LineSink = std::function<void(const Line&)>;

struct RankEnd {
  int code = 0;    ///< exit code, 128 + signal where a signal ended it
  int signal = 0;  ///< 0: it ended by itself
};

struct JobEnd {
  std::vector<RankEnd> ranks;
  int first_failure = -1;    ///< the rank that ended first in a failure; -1: none did
  std::vector<int> stopped;  ///< ranks that were stopped (SIGSTOP, a debugger) at that moment: they cannot end
  int forwarded_signal = 0;  ///< the first of SIGINT, SIGTERM, SIGHUP that was forwarded; 0: none
  [[nodiscard]] int exit_code() const { return first_failure < 0 ? 0 : ranks[first_failure].code; }
  /// "rank 2 was killed by SIGKILL", "rank 1 exited with code 3", "all 4 ranks succeeded"; "..., the first of the ranks
  /// to end in a failure; rank 2 was stopped then" says of several ranks what came first, which need not be the cause.
  [[nodiscard]] std::string description() const;
};

struct SuperviseOptions {
  /// After the first failure the others have so long to end with their own error (which tells the user more than ours).
  std::chrono::milliseconds own_error{5'000};
  std::chrono::milliseconds termination{2'000};  ///< from SIGTERM to SIGKILL
  bool progress = false;                         ///< pass on rank 0's carriage-return updates as Stream::progress
  std::vector<std::string> files;                ///< removed if this process is killed
};

/// Starts program i as rank i and returns when all have ended. SIGINT, SIGTERM and SIGHUP that arrive meanwhile are
/// forwarded to all; the second SIGINT kills them. Stopping this process (Ctrl-Z) stops them too. What ranks have left
/// running in their process groups is killed at the end. To be called on the main thread.
/// Throws Misuse if a program cannot be executed (the ones already started are killed), SystemFailure.
[[nodiscard]] JobEnd supervise(const std::vector<Program>& programs, const SuperviseOptions& options,
                               const LineSink& sink);

/// "SIGKILL" for 9.
[[nodiscard]] std::string signal_name(int number);

}  // namespace syncopate::tools::launch
