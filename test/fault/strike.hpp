// Strike: ranks of a job that make random calls are killed or stopped at a random moment; survivors must report it.
#pragma once

#include <signal.h>

#include <algorithm>
#include <vector>

#include "processes.hpp"
#include "random/perform.hpp"

namespace syncopate::test {

inline constexpr std::chrono::milliseconds kSilence{1000};
/// Guarantees, not speeds: a death is usually noticed within milliseconds, silence 0.3 s after its end.
inline constexpr double kBoundOfKill = 2, kBoundOfStop = 1e-3 * kSilence.count() + 1;

struct Strike {
  std::uint64_t seed = 0;
  int signal = SIGKILL;
  int ranks = 2;
  std::string transport;
  std::vector<int> victims;
  int leaver = -1;  ///< an inner rank of the control tree, which leaves in order at the same time
  int steps = 1;    ///< of the first survivor before the strike
  int pause_us = 0, apart_us = 0;
  World world;

  [[nodiscard]] bool strikes(int rank) const { return std::ranges::find(victims, rank) != victims.end(); }
  [[nodiscard]] double bound_s() const { return signal == SIGKILL ? kBoundOfKill : kBoundOfStop; }
};

[[nodiscard]] Strike draw_strike(std::uint64_t seed, int signal);
[[nodiscard]] std::string text_of(const Strike& strike);

struct Outcome {
  std::vector<std::string> flaws;   ///< of survivors: hangs, wrong values, errors that do not name a victim
  std::vector<double> latencies_s;  ///< from the first signal to a survivor's error
};
[[nodiscard]] Outcome outcome_of(const Strike& strike);

}  // namespace syncopate::test
