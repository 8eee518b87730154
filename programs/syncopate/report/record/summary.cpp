// The figures of a report: the costs of a run, its end, and what its folder lacks.
#include "report/record/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/record/jsonl.hpp"
#include "report/record/series.hpp"

namespace syncopate::tools::report::record {
namespace {

constexpr std::size_t kNamedRanks = 8;  // notes name at most 8 ranks

RankSummary summary_of(const RankRecord& rank) {
  RankSummary summary;
  const Spread measured = spread(rank, &Step::step_s);
  summary.step_seconds = rank.end && rank.end->step_seconds.n > 0 ? rank.end->step_seconds : measured;
  if (!rank.steps.empty()) summary.last_step = rank.steps.back().step;
  double waited = 0, total = 0;
  for (const Step& step : rank.steps) {
    if (std::isnan(step.wait_s) || std::isnan(step.step_s)) continue;
    waited += step.wait_s;
    total += step.step_s;
  }
  summary.wait_share = total > 0 ? waited / total : spread(rank, &Step::wait_share).median;
  const bool is_counted = rank.end && !std::isnan(rank.end->wire_bytes_per_step);
  summary.wire_bytes = is_counted ? rank.end->wire_bytes_per_step : spread(rank, &Step::wire_bytes).median;
  summary.traced = !rank.spans.empty();
  if (summary.traced) summary.budget = budget_of(rank.spans);
  return summary;
}

/// The median over ranks of each rank's median.
double typical(const Run& run, double Step::*figure) {
  std::vector<double> medians;
  for (const RankRecord& rank : run.ranks) medians.push_back(spread(rank, figure).median);
  return median(std::move(medians));
}

void mean_budget(const Run& run, Summary& summary) {
  static constexpr double Budget::*kFigures[] = {&Budget::step_s,           &Budget::input_s,
                                                 &Budget::forward_s,        &Budget::backward_s,
                                                 &Budget::optimizer_s,      &Budget::wait_s,
                                                 &Budget::hidden_s,         &Budget::exchange_s,
                                                 &Budget::exposed_s,        &Budget::behind_backward_s,
                                                 &Budget::behind_forward_s, &Budget::copy_s,
                                                 &Budget::hidden_copy_s};
  double traced = 0;
  for (const RankSummary& rank : summary.ranks) traced += rank.traced;
  summary.traced = traced > 0;
  for (const auto figure : kFigures) {
    double sum = 0;
    for (const RankSummary& rank : summary.ranks) sum += rank.budget.*figure;
    summary.budget.*figure = summary.traced ? sum / traced : kUnknown;
  }
  if (summary.traced) return;
  summary.budget.step_s = typical(run, &Step::step_s);
  summary.budget.input_s = typical(run, &Step::input_s);
  summary.budget.forward_s = typical(run, &Step::forward_s);
  summary.budget.backward_s = typical(run, &Step::backward_s);
  summary.budget.optimizer_s = typical(run, &Step::optimizer_s);
  summary.budget.wait_s = typical(run, &Step::wait_s);
}

/// Averages all steps whose time is known; a figure that no step has stays unknown.
void mean_step(const Run& run, Summary& summary) {
  static constexpr std::pair<double Budget::*, double Step::*> kFigures[] = {
      {&Budget::input_s, &Step::input_s},         {&Budget::forward_s, &Step::forward_s},
      {&Budget::backward_s, &Step::backward_s},   {&Budget::wait_s, &Step::wait_s},
      {&Budget::optimizer_s, &Step::optimizer_s}, {&Budget::step_s, &Step::step_s}};
  for (const auto& [mean, figure] : kFigures) {
    double sum = 0, steps = 0;
    for (const RankRecord& rank : run.ranks)
      for (const Step& step : rank.steps)
        if (std::isfinite(step.*figure) && std::isfinite(step.step_s)) sum += step.*figure, steps += 1;
    summary.run.*mean = steps > 0 ? sum / steps : kUnknown;
  }
}

void add(Tier& sum, const Tier& tier) {
  sum.records += tier.records;
  sum.bytes += tier.bytes;
}

void sum_input(const Run& run, Summary& summary) {
  double waited = 0, total = 0;
  std::map<double, InputEpoch> epochs;
  for (const RankRecord& rank : run.ranks) {
    for (const Step& step : rank.steps) {
      if (std::isnan(step.input_s) || std::isnan(step.step_s)) continue;
      waited += step.input_s;
      total += step.step_s;
    }
    if (!rank.end) continue;
    for (const InputEpoch& row : rank.end->input) {
      InputEpoch& sum = epochs[row.epoch];
      sum.epoch = row.epoch;
      for (const auto tier : {&InputEpoch::memory, &InputEpoch::disk, &InputEpoch::peers, &InputEpoch::origin})
        add(sum.*tier, row.*tier);
      sum.damaged += row.damaged;
    }
  }
  if (total > 0) summary.input_share = waited / total;
  for (const auto& [number, epoch] : epochs) summary.input.push_back(epoch);
}

void compare_replicas(const Run& run, Summary& summary) {
  std::map<std::string, int> votes;
  bool complete = true;
  for (const RankRecord& rank : run.ranks) {
    const bool voted = rank.end && !rank.end->digest.empty();
    if (voted) ++votes[rank.end->digest];
    complete = complete && voted;
  }
  if (votes.empty()) return;
  const std::string most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; })->first;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const auto& end = run.ranks[r].end;
    summary.ranks[r].differs = run.exchanges() && end && !end->digest.empty() && end->digest != most;
  }
  if (run.ranks.size() > 1 && !run.exchanges())
    summary.replicas = Replicas::alone;
  else if (votes.size() > 1)
    summary.replicas = Replicas::differ;
  else if (complete)
    summary.replicas = Replicas::equal;
}

void outcome(const Run& run, Summary& summary) {
  const auto evaluator =
      std::ranges::find_if(run.ranks, [](const RankRecord& rank) { return !rank.evaluations.empty(); });
  if (evaluator != run.ranks.end()) {
    const Evaluation& last = evaluator->evaluations.back();
    summary.accuracy = last.accuracy;
    summary.top_5_accuracy = last.top_5_accuracy;
    summary.loss = last.loss;
    if (!evaluator->steps.empty() && last.step < evaluator->steps.back().step) summary.evaluated_step = last.step;
  }
  summary.loss_is_evaluated = !std::isnan(summary.loss);
  const std::vector<Point> losses = over_steps(run, &Step::loss);
  if (!summary.loss_is_evaluated && !losses.empty())
    summary.loss = running_mean(losses, std::max<std::size_t>(1, losses.size() / 20)).back().y;
}

/// "rank 2", "ranks 1, 2 and 5", "ranks 0, 1, 2 … (12 of them)".
std::string ranks_text(const std::vector<std::size_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  std::string result = fmt::format("ranks {}", ranks[0]);
  for (std::size_t i = 1; i < std::min(ranks.size(), kNamedRanks); ++i)
    result += fmt::format("{}{}", i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return ranks.size() > kNamedRanks ? fmt::format("{} … ({} of them)", result, ranks.size()) : result;
}

/// Adds a sentence about the ranks for which `holds`, if there are any.
template <class Predicate>
void note_ranks(const Run& run, Summary& summary, const char* sentence, Predicate holds) {
  std::vector<std::size_t> named;
  for (std::size_t r = 0; r < run.ranks.size(); ++r)
    if (holds(run.ranks[r])) named.push_back(r);
  if (!named.empty()) summary.notes.push_back(fmt::format(fmt::runtime(sentence), ranks_text(named)));
}

/// One sentence for all ranks that stopped at the same step in the same way.
void note_unfinished(const Run& run, Summary& summary) {
  std::map<std::pair<double, bool>, std::vector<std::size_t>> stops;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const RankRecord& rank = run.ranks[r];
    if (rank.present && !rank.end) stops[{summary.ranks[r].last_step, rank.torn}].push_back(r);
  }
  for (const auto& [stop, ranks] : stops) {
    std::string who = ranks_text(ranks);
    who.front() = 'R';
    const char* whose = ranks.size() == 1 ? "its" : "their";
    const std::string how = stop.second ? fmt::format(", and {} last row is in pieces", whose) : "";
    summary.notes.push_back(
        fmt::format("{} did not finish: {} last recorded step is {:.0f}{}.", who, whose, stop.first, how));
  }
}

/// Names the missing ranks in a few words.
void name_incomplete(const Run& run, Summary& summary) {
  std::vector<std::size_t> absent;
  std::map<double, std::vector<std::size_t>> stopped;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    if (!run.ranks[r].present)
      absent.push_back(r);
    else if (!run.ranks[r].end)
      stopped[summary.ranks[r].last_step].push_back(r);
  }
  if (!absent.empty()) summary.incomplete = ranks_text(absent) + " wrote nothing";
  for (const auto& [step, ranks] : stopped)
    summary.incomplete +=
        fmt::format("{}{} stopped at step {:.0f}", summary.incomplete.empty() ? "" : ", ", ranks_text(ranks), step);
}

void note_what_is_missing(const Run& run, Summary& summary) {
  note_ranks(run, summary, "Nothing was written by {}.", [](const RankRecord& rank) { return !rank.present; });
  for (std::size_t r = 0; r < run.ranks.size(); ++r)
    if (!run.ranks[r].error.empty()) summary.notes.push_back(fmt::format("Rank {} failed: {}", r, run.ranks[r].error));
  note_unfinished(run, summary);
  if (summary.traced) {
    note_ranks(run, summary, "No step was traced by {}.", [](const RankRecord& rank) { return rank.spans.empty(); });
  } else {
    summary.notes.push_back("No step was traced, so how communication and computing overlapped is not known.");
  }
  note_ranks(run, summary, "The trace of {} has spans that do not begin and then end; they are left out.",
             [](const RankRecord& rank) { return rank.has_bad_spans; });
  if (summary.replicas == Replicas::differ)
    summary.notes.push_back("The ranks ended with different parameters: their digests are NOT equal.");
  if (run.layers.empty()) summary.notes.push_back("run.json lists no layers.");
  const std::vector<Point> losses = over_steps(run, &Step::loss), steps = over_steps(run, &Step::step);
  if (losses.size() == steps.size()) return;
  std::size_t lost = 0;
  while (lost < losses.size() && losses[lost].x == steps[lost].x) ++lost;
  summary.notes.push_back(fmt::format("The loss is missing or not a number at step {:.0f}.", steps[lost].x));
}

}  // namespace

Summary summary_of(const Run& run) {
  Summary summary;
  std::vector<double> waits;
  for (const RankRecord& rank : run.ranks) {
    summary.ranks.push_back(summary_of(rank));
    summary.last_step = std::max(summary.last_step, summary.ranks.back().last_step);
    waits.push_back(summary.ranks.back().wait_share);
  }
  std::vector<double> bytes, steps;
  for (const RankSummary& rank : summary.ranks) {
    bytes.push_back(rank.wire_bytes);
    steps.push_back(rank.step_seconds.median);
  }
  summary.planned_steps = number(run.configuration, "steps");
  summary.step_s = median(std::move(steps));
  summary.predicted_s = typical(run, &Step::predicted_s);
  mean_step(run, summary);
  summary.wait_share = summary.run.wait_s / summary.run.step_s;
  if (std::isnan(summary.wait_share)) summary.wait_share = median(std::move(waits));
  summary.wire_bytes = median(std::move(bytes));
  summary.samples_per_second = typical(run, &Step::samples_per_second);
  mean_budget(run, summary);
  sum_input(run, summary);
  compare_replicas(run, summary);
  outcome(run, summary);
  name_incomplete(run, summary);
  note_what_is_missing(run, summary);
  return summary;
}

}  // namespace syncopate::tools::report::record
