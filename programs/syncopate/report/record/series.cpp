// Numbers over steps: mean over ranks, running mean, thinning for drawing, medians.
#include "report/record/series.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace syncopate::tools::report::record {
namespace {

constexpr std::size_t kWarmUpSteps = 3, kFewSteps = 5;

}  // namespace

std::vector<Point> over_steps(const Run& run, double Step::*figure) {
  const RankRecord* longest = nullptr;
  for (const RankRecord& rank : run.ranks)
    if (!longest || rank.steps.size() > longest->steps.size()) longest = &rank;
  std::vector<Point> points;
  if (!longest) return points;
  for (std::size_t i = 0; i < longest->steps.size(); ++i) {
    const double step = longest->steps[i].step;
    double sum = 0, count = 0;
    for (const RankRecord& rank : run.ranks) {
      if (i >= rank.steps.size() || rank.steps[i].step != step) continue;
      const double value = rank.steps[i].*figure;
      if (std::isfinite(value)) sum += value, count += 1;
    }
    if (count > 0) points.push_back({step, sum / count});
  }
  return points;
}

std::vector<Point> clock_spread(const Run& run) {
  struct Ended {
    double at_s = 0;
    std::size_t rank = 0;
    double clock = 0;
  };
  std::vector<Ended> all;
  std::vector<double> clocks;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    double at_s = 0;
    for (const Step& step : run.ranks[r].steps)
      if (std::isfinite(step.time) || std::isfinite(step.step_s))
        all.push_back({at_s = std::isfinite(step.time) ? step.time : at_s + step.step_s, r, step.step});
    clocks.push_back(run.ranks[r].steps.empty() ? 0 : run.ranks[r].steps.front().step - 1);
  }
  std::ranges::stable_sort(all, {}, &Ended::at_s);
  std::vector<Point> points;
  for (const Ended& ended : all) {
    clocks[ended.rank] = ended.clock;
    const auto [least, most] = std::ranges::minmax(clocks);
    if (points.empty() || points.back().x < most) points.push_back({most, 0});
    points.back().y = std::max(points.back().y, most - least);
  }
  return points;
}

std::vector<Point> running_mean(const std::vector<Point>& points, std::size_t window) {
  std::vector<Point> result;
  result.reserve(points.size());
  const std::size_t half = window / 2;
  double sum = 0;
  std::size_t begin = 0, end = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    while (end < std::min(points.size(), i + half + 1)) sum += points[end++].y;
    while (begin + half < i) sum -= points[begin++].y;
    result.push_back({points[i].x, sum / static_cast<double>(end - begin)});
  }
  return result;
}

std::vector<Point> thinned(const std::vector<Point>& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  const std::size_t stretches = std::max<std::size_t>(1, limit / 2);
  std::vector<Point> result;
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(points.size() * s / stretches);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (s + 1) / stretches);
    auto [low, high] = std::minmax_element(first, last, [](const Point& a, const Point& b) { return a.y < b.y; });
    if (high < low) std::swap(low, high);
    result.push_back(*low);
    if (low != high) result.push_back(*high);
  }
  return result;
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return kUnknown;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Spread spread(const RankRecord& rank, double Step::*figure) {
  const std::size_t first = rank.steps.size() > kFewSteps ? kWarmUpSteps : 0;
  const auto typical = std::span(rank.steps).subspan(first);
  const bool all_measure = std::ranges::all_of(typical, &Step::measuring);
  std::vector<double> values;
  for (const Step& step : typical)
    if (std::isfinite(step.*figure) && (all_measure || !step.measuring)) values.push_back(step.*figure);
  if (values.empty()) return {};
  const auto [low, high] = std::ranges::minmax(values);
  const double n = static_cast<double>(values.size());
  return {median(std::move(values)), low, high, n};
}

}  // namespace syncopate::tools::report::record
