// DSSP: dynamic stale synchronous parallelism: a bound between LOW and HIGH that follows the workers' measured paces.
// Zhao et al., "Dynamic stale synchronous parallel distributed training for deep learning", ICDCS 2019.
//
//   fastest   |=|=|=|=|. . r steps?           stops at t(r) = now + r p
//   slowest   |====|====|====|====|           its next update after t(r): that of the least k >= 1 with u + k q >= t(r)
//
// p, q: seconds per step of the two; u: when the slowest one's last update came. Beyond LOW the fastest worker computes
// r more steps, at most until HIGH, so that it then waits least for an update of the slowest one. The others wait at
// LOW. Traffic: one update up and one copy of the weights down in each step.
#include <algorithm>
#include <cmath>

#include "base/require.hpp"
#include "server/consistency.hpp"

namespace syncopate::server::consistency {

namespace {

/// A decision tries every number of steps up to HIGH.
constexpr double kMostBound = 1000;
constexpr Parameter kParameters[] = {{"low", 0, kMostBound, true, true}, {"high", 0, kMostBound, true, true}};

/// How long a worker that stops at `stop_s` waits for the next update of another one.
double wait_s(double stop_s, const Pace& other) {
  const double steps = std::max(1.0, std::ceil((stop_s - other.pushed_s) / other.step_s));
  return other.pushed_s + steps * other.step_s - stop_s;
}

Clock last_step(const ServerView& view, Clock low, Clock high) {
  const Clock own = view.clocks[view.worker];
  if (own - view.least <= low || own < std::ranges::max(view.clocks)) return 0;
  const Pace& pace = view.paces[view.worker];
  const Pace& slowest =
      view.paces[static_cast<std::size_t>(std::ranges::min_element(view.clocks) - view.clocks.begin())];
  if (!(pace.step_s > 0 && slowest.step_s > 0)) return 0;
  const double now_s = std::ranges::max(view.paces, {}, &Pace::pushed_s).pushed_s;
  Clock best = 0;
  double least_s = wait_s(now_s, slowest);
  for (Clock more = 1; own + more - 1 <= view.least + high; ++more)
    if (const double s = wait_s(now_s + static_cast<double>(more) * pace.step_s, slowest); s < least_s) {
      best = more;
      least_s = s;
    }
  return best == 0 ? 0 : own + best - 1;
}

Rule rule(std::span<const double> numbers) {
  const auto low = static_cast<Clock>(numbers[0]), high = static_cast<Clock>(numbers[1]);
  base::require(low <= high, "consistency 'dssp:{},{}': low is above high; allowed: low at most high", low, high);
  return {.staleness = low,
          .travels_early = [](const ClockView& /*clocks*/) { return true; },
          .last_step = [=](const ServerView& view) { return last_step(view, low, high); }};
}

}  // namespace

extern constinit const Consistency dssp{
    .name = "dssp",
    .summary = "A bound between LOW and HIGH steps that follows the workers' measured paces: `dssp:LOW,HIGH`",
    .source = "Zhao et al., ICDCS 2019",
    .parameter = "3,15",
    .parameters = kParameters,
    .rule = rule,
};

}  // namespace syncopate::server::consistency
