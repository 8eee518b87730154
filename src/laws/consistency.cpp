// The laws of a consistency model, in drawn histories of a parameter server's job.
#include <algorithm>

#include "base/require.hpp"
#include "laws/cases.hpp"
#include "laws/history.hpp"

namespace syncopate {

namespace {

using laws::History;
using laws::HistoryOptions;
using laws::Seen;
using server::Clock;

std::optional<BrokenLaw> stale(const Seen& seen, const ConsistencyCheck& with) {
  const auto broken = [&](std::string law, std::size_t of, Clock promised) -> BrokenLaw {
    return {.law = std::move(law),
            .text = fmt::format("step {} of worker {} computes with {} steps of worker {}; promised: {}", seen.step,
                                seen.worker, seen.least[of], of, promised),
            .worker = seen.worker,
            .step = seen.step};
  };
  if (seen.least[seen.worker] != seen.step) return broken("read my writes", seen.worker, seen.step);
  const auto least = std::ranges::min_element(seen.least);
  if (with.bound && *least < seen.step - *with.bound)
    return broken("bounded staleness", static_cast<std::size_t>(least - seen.least.begin()), seen.step - *with.bound);
  return std::nullopt;
}

std::optional<BrokenLaw> blocked(const History& history, const HistoryOptions& options) {
  const auto waits = std::ranges::find(history.finished, false);
  if (waits == history.finished.end()) return std::nullopt;
  const auto worker = static_cast<std::size_t>(waits - history.finished.begin());
  return BrokenLaw{.law = "no deadlock",
                   .text = fmt::format("worker {} waits forever at step {} of {}; the {} workers have ended {} steps",
                                       worker, history.clocks[worker], options.steps, options.setup.workers,
                                       fmt::join(history.clocks, ", ")),
                   .worker = worker,
                   .step = history.clocks[worker]};
}

std::optional<BrokenLaw> unequal(const History& first, const History& second) {
  if (first == second) return std::nullopt;
  const auto [one, other] = std::ranges::mismatch(first.seen, second.seen);
  const Seen& seen = one != first.seen.end() ? *one : first.seen.back();
  return BrokenLaw{.law = "equal decisions",
                   .text = fmt::format("it decides differently at step {} of worker {} when the history runs again",
                                       seen.step, seen.worker),
                   .worker = seen.worker,
                   .step = seen.step};
}

std::optional<BrokenLaw> broken_in_history(const HistoryOptions& options, const ConsistencyCheck& with) {
  const History history = laws::history_of(options);
  for (const Seen& seen : history.seen)
    if (auto broken = stale(seen, with)) return broken;
  if (auto broken = blocked(history, options)) return broken;
  return unequal(history, laws::history_of(options));
}

}  // namespace

std::optional<BrokenLaw> check_consistency(const server::Consistency& model, const ConsistencyCheck& with) {
  base::require(with.steps >= 1 && with.most_workers >= 1 && with.most_servers >= 1,
                "{} steps, {} workers and {} servers; allowed: at least 1 of each", with.steps, with.most_workers,
                with.most_servers);
  const Catalogue standard;
  const auto entries = standard.consistencies();
  const Catalogue catalogue = std::ranges::find(entries, &model) == entries.end() ? standard.with(model) : standard;
  const std::string name = fmt::format("{}{}{}", model.name, with.parameter.empty() ? "" : ":", with.parameter);
  static_cast<void>(server::rule_of(name, catalogue));
  return laws::first_broken("consistency " + name, with.seed, with.histories, [&](std::uint64_t seed) {
    return broken_in_history(
        laws::drawn_history(name, catalogue, seed, with.steps, {with.most_workers, with.most_servers}), with);
  });
}

}  // namespace syncopate
