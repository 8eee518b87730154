// The end of a job: how each rank ended, which one failed first, and the words for it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syncopate::tools::launch::job {

struct RankEnd {
  std::string name;  ///< "rank 2", "server 0"
  int code = 0;      ///< exit code, 128 + signal where a signal ended it
  int signal = 0;    ///< 0: it ended by itself
  /// "rank 2 was killed by SIGKILL", "rank 1 exited with code 3"; "was ended by" a signal that asks a program to end,
  /// as SIGTERM: the program may have ended in order and then raised it.
  [[nodiscard]] std::string description() const;
};

struct End {
  std::vector<RankEnd> ranks;
  int first_failure = -1;    ///< the rank that failed first; -1: none did
  bool is_blamed = false;    ///< by the ranks' own errors; else the first rank that ended in a failure
  std::vector<int> stopped;  ///< ranks that were stopped (SIGSTOP, a debugger) at that moment: they cannot end
  int forwarded_signal = 0;  ///< the first of SIGINT, SIGTERM, SIGHUP that was forwarded; 0: none
  bool interrupted = false;  ///< that signal came before any failure: it is why the ranks ended
  [[nodiscard]] int exit_code() const { return first_failure < 0 ? 0 : ranks[first_failure].code; }
  /// "rank 2 was killed by SIGKILL", "rank 1 exited with code 3", "all 4 ranks succeeded", "interrupted by SIGINT"; of
  /// several ranks "..., the first to fail" where their errors blame it, else "..., the first to end in failure; rank 2
  /// was stopped then", which need not be the cause.
  [[nodiscard]] std::string description() const;
};

}  // namespace syncopate::tools::launch::job
