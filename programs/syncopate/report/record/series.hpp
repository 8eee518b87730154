// Numbers over steps: mean over ranks, running mean, thinning for drawing, medians.
#pragma once

#include <vector>

#include "report/record/run.hpp"

namespace syncopate::tools::report::record {

struct Point {
  double x = 0, y = 0;
};

/// One figure of the step rows over steps, averaged over the ranks that recorded it; unknown values are left out.
[[nodiscard]] std::vector<Point> over_steps(const Run& run, double Step::*figure);
/// By how many steps the fastest rank is ahead of the slowest, over the fastest one's step: of the times at which
/// steps ended; where rows have none, of the steps' durations, as if all had begun the first one together.
[[nodiscard]] std::vector<Point> clock_spread(const Run& run);
/// Centred running mean over `window` points (fewer at the ends).
[[nodiscard]] std::vector<Point> running_mean(const std::vector<Point>& points, std::size_t window);
/// At most `limit` points: of every stretch its lowest and its highest one, so that no spike is lost.
[[nodiscard]] std::vector<Point> thinned(const std::vector<Point>& points, std::size_t limit = 2000);
/// Unknown values are left out; unknown when nothing remains.
[[nodiscard]] double median(std::vector<double> values);
/// Median, smallest, largest of one figure of one rank, without the first 3 steps (warm-up) when there are more than 5.
[[nodiscard]] Spread spread(const RankRecord& rank, double Step::*figure);

}  // namespace syncopate::tools::report::record
