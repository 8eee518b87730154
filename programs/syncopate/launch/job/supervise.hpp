// Supervision: runs programs to their common end: output in whole lines, killed ones started again, no leftovers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job/end.hpp"
#include "launch/process/program.hpp"
#include "syncopate/tooling/standard_streams.hpp"

namespace syncopate::tools::launch::job {

enum class Stream : std::uint8_t {
  output,
  error,
  blame,     ///< of a rank: which rank failed first; not passed on
  progress,  ///< rank 0's line in the making, to be overwritten by the next
};

struct Line {
  int rank = 0;
  std::string_view name;  ///< of a program that is not a rank; else empty
  Stream stream = Stream::output;
  std::string_view text;  ///< without '\n'; valid during the call
  Ready ready{};          ///< waits for the reader of what a sink writes; where it returns false, the rest is dropped
};
using LineSink = std::function<void(const Line&)>;

struct SuperviseOptions {
  /// After the first failure the others have this time to end with their own error, which is more precise than ours.
  std::chrono::milliseconds own_error{5'000};
  std::chrono::milliseconds termination{2'000};  ///< from SIGTERM to SIGKILL
  /// After a signal: time in which the reader of the output must take something, or it loses the rest.
  std::chrono::milliseconds reader{2'000};
  /// A rank that fails ends nothing: the others go on, and those that attend with them. After a signal this does not
  /// apply.
  bool others_go_on = false;
  bool progress = false;           ///< pass on rank 0's carriage-return updates as Stream::progress
  std::vector<std::string> files;  ///< removed if this process is killed
};

/// Starts program i as rank i and returns when all have ended. SIGINT, SIGTERM and SIGHUP that arrive meanwhile are
/// forwarded to those that do not attend; the second SIGINT kills all. Programs that attend are asked to end (SIGTERM)
/// when all others have. Stopping this process (Ctrl-Z) stops them too. Processes that ranks have left running in their
/// process groups are killed at the end. To be called on the main thread.
/// Throws Misuse if a program cannot be executed (the ones already started are killed), SystemFailure.
[[nodiscard]] End supervise(const std::vector<process::Program>& programs, const SuperviseOptions& options,
                            const LineSink& sink);

}  // namespace syncopate::tools::launch::job
