// Record: medians over steps, extremes over ranks.
#include "sync/planning/record.hpp"

#include <algorithm>

#include "schedule/median.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::sync::planning {

namespace {

template <class Value>
double median_over(std::span<const StepRecord> steps, const Value& value) {
  std::vector<double> values;
  for (const StepRecord& step : steps) values.push_back(value(step));
  return schedule::median(std::move(values));
}

double bytes_begun_before_last_gradient(const StepRecord& step) {
  const double last_s = *std::ranges::max_element(step.ready_s);
  double bytes = 0;
  for (const schedule::BucketTiming& timing : step.exchanges)
    if (timing.begin_s < last_s) bytes += static_cast<double>(timing.bytes);
  return bytes;
}

}  // namespace

Measurement measurement_of(std::span<const StepRecord> steps) {
  Measurement result;
  for (std::size_t i = 0; i < steps.front().ready_s.size(); ++i)
    result.ready_s.push_back(median_over(steps, [i](const StepRecord& step) { return step.ready_s[i]; }));
  for (const StepRecord& step : steps)
    for (const schedule::BucketTiming& timing : step.exchanges)
      result.exchanges.push_back({static_cast<double>(timing.bytes), timing.end_s - timing.begin_s});
  result.tail_s = median_over(steps, [](const StepRecord& step) { return step.end_s - step.exchanges.back().end_s; });
  result.backward_s = median_over(steps, [](const StepRecord& step) {
    const auto [first, last] = std::ranges::minmax_element(step.ready_s);
    return *last - *first;
  });
  result.bytes_overlapping = median_over(steps, bytes_begun_before_last_gradient);
  return result;
}

void combine(Group& group, Measurement& mine) {
  std::vector<double> latest = mine.ready_s, least;
  latest.insert(latest.end(), {mine.tail_s, mine.backward_s});
  for (const schedule::Point& exchange : mine.exchanges) least.push_back(exchange.seconds);
  least.push_back(mine.bytes_overlapping);
  allreduce(group, std::span(latest), {.op = ReduceOp::max, .name = "when gradients are ready"});
  allreduce(group, std::span(least), {.op = ReduceOp::min, .name = "what exchanges took"});
  const std::size_t gradients = mine.ready_s.size();
  std::copy_n(latest.begin(), gradients, mine.ready_s.begin());
  mine.tail_s = latest[gradients];
  mine.backward_s = latest[gradients + 1];
  for (std::size_t i = 0; i < mine.exchanges.size(); ++i) mine.exchanges[i].seconds = least[i];
  mine.bytes_overlapping = least.back();
}

}  // namespace syncopate::sync::planning
