// The figures of a report: the costs of a run, its end, and what its folder lacks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/record/overlap.hpp"
#include "report/record/run.hpp"

namespace syncopate::tools::report::record {

/// Comparison of the ranks' digests of their parameters. `alone`: the ranks exchanged nothing, so they may differ.
enum class Replicas : std::uint8_t { equal, differ, unknown, alone };

struct RankSummary {
  Spread step_seconds;
  double last_step = 0;
  double wait_share = kUnknown, wire_bytes = kUnknown;
  Budget budget;  ///< of the traced step
  bool traced = false;
  bool differs = false;  ///< its digest is not the one most ranks have
};

struct Summary {
  double last_step = 0;  ///< the furthest any rank recorded
  double planned_steps = kUnknown;
  Budget run;                     ///< mean over the steps of all ranks, without the figures of exchanges
  Budget budget;                  ///< mean of the traced ranks, else medians of the step rows without exchange_s
  bool traced = false;            ///< whether `budget` comes from a trace
  double step_s = kUnknown;       ///< median over steps and ranks
  double predicted_s = kUnknown;  ///< the same of what steps were predicted to take
  double wait_share = kUnknown;   ///< of the time of all steps of all ranks, blocked on communication
  double samples_per_second = kUnknown, wire_bytes = kUnknown;
  double input_share = kUnknown;  ///< of the time, waiting for input: mean over the ranks
  double loss = kUnknown;         ///< evaluated where that happened, else the training loss at the end (running mean)
  bool loss_is_evaluated = false;
  double evaluated_step = kUnknown;  ///< before the last evaluation, if more steps followed
  double accuracy = kUnknown, top_5_accuracy = kUnknown;
  Replicas replicas = Replicas::unknown;
  std::vector<RankSummary> ranks;
  std::vector<InputEpoch> input;   ///< sums over the ranks
  std::string incomplete;          ///< "rank 3 wrote nothing, rank 2 stopped at step 9"; empty: all ranks finished
  std::vector<std::string> notes;  ///< what is missing or odd, one sentence each

  /// Share of the exchange that ran while the rank computed; unknown without a trace of an exchange.
  [[nodiscard]] double overlap_share() const {
    return traced && budget.exchange_s > 0 ? budget.hidden_s / budget.exchange_s : kUnknown;
  }
};

[[nodiscard]] Summary summary_of(const Run& run);

}  // namespace syncopate::tools::report::record
