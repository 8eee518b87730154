// Planner: stages, costs from measurements, forecasts, drift.
#include "sync/planning/planner.hpp"

#include <algorithm>
#include <cmath>

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

namespace {

constexpr std::uint64_t kSettling = 1;  // steps; memory is touched and connections are used for the first time
constexpr std::uint64_t kMeasured = 4;
constexpr std::size_t kDriftSteps = 8;        // number of steps whose medians are compared for drift
constexpr std::uint64_t kRarestCheck = 1024;  // steps
constexpr double kDrift = 0.2;                // relative change
constexpr double kNoticeable = 0.05;          // share of the step; smaller changes are not worth a new plan
constexpr double kClearlyBetter = 0.02;       // least relative gain for which a partition replaces the present one

/// A bucket leaves when all later gradients are ready, so a gradient never counts as ready before a later one.
schedule::Timeline timed(schedule::Timeline timeline, const std::vector<double>& ready_s) {
  double before_s = 0;
  for (std::size_t i = timeline.layers.size(); i-- > 0;) {
    timeline.layers[i].backward_s = std::max(0.0, ready_s[i] - before_s);
    before_s = std::max(before_s, ready_s[i]);
  }
  return timeline;
}

bool differs(double now, double then, double noticeable) {
  return std::abs(now - then) > std::max(kDrift * then, noticeable);
}

}  // namespace

Planner::Planner(schedule::Timeline sizes, const PlannerOptions& planner, schedule::PolicyOptions options)
    : sizes_(std::move(sizes)),
      policy_(schedule::policy_named(planner.policy, planner.catalogue)),
      planner_options_(planner),
      options_(std::move(options)),
      weighs_times_(policy_.needs == schedule::Needs::times),
      interval_(static_cast<std::uint64_t>(planner.check_every)) {
  if (policy_.needs != schedule::Needs::events) partition_ = by(weighs_times_ ? "single" : policy_.name);
}

schedule::Partition Planner::by(std::string_view policy) const {
  return partition_by(schedule::policy_named(policy, planner_options_.catalogue), sizes_, options_);
}

void Planner::enter(Stage stage) {
  stage_ = stage;
  steps_ = 0;
  records_.clear();
}

Planner::Review Planner::note(StepRecord step) {
  ++steps_;
  records_.push_back(std::move(step));
  if (records_.size() > kDriftSteps) records_.pop_front();
  switch (stage_) {
    case Stage::settling:
      if (steps_ == kSettling) enter(Stage::alone);
      return Review::none;
    case Stage::alone:
    case Stage::overlapping:
      return steps_ == kMeasured ? end_of_stage() : Review::none;
    case Stage::running:
      break;
  }
  return weighs_times_ && interval_ > 0 && steps_ % interval_ == 0 ? Review::check : Review::none;
}

Planner::Review Planner::end_of_stage() {
  const std::vector<StepRecord> steps(records_.begin(), records_.end());
  measurements_.push_back(measurement_of(steps));
  if (stage_ == Stage::overlapping || !weighs_times_ || planner_options_.cost_is_given) return Review::plan;
  partition_ = by("wfbp");
  enter(Stage::overlapping);
  return Review::partition;
}

// Inverts the model of `evaluate`: an exchange that begins before a gradient is ready delays it by c seconds per byte.
schedule::Cost Planner::observed_cost() const {
  schedule::CostInputs inputs;
  for (const Measurement& stage : measurements_)
    inputs.points.insert(inputs.points.end(), stage.exchanges.begin(), stage.exchanges.end());
  schedule::Cost cost = schedule::cost_model_named("observed").cost(inputs);
  const Measurement &alone = measurements_.front(), &overlapping = measurements_.back();
  const auto bytes = static_cast<double>(bytes_of(sizes_, {0, sizes_.layers.size() - 1}));
  const double slowed_s = overlapping.backward_s - alone.backward_s;
  if (slowed_s > 0 && overlapping.bytes_overlapping > 0)
    cost.cpu_s_per_byte = std::min(slowed_s / overlapping.bytes_overlapping, cost(bytes) / bytes);
  return cost;
}

schedule::Partition Planner::plan() {
  timeline_ = timed(sizes_, measurements_.front().ready_s);
  if (!planner_options_.cost_is_given || !options_.cost) options_.cost = observed_cost();
  if (policy_.needs == schedule::Needs::sizes) return partition_;
  schedule::Partition best = partition_by(policy_, timeline_, options_);
  if (planned_.empty() || !weighs_times_) return best;
  const double as_it_is_s = evaluate(timeline_, planned_, *options_.cost).iteration_s;
  const double at_best_s = evaluate(timeline_, best, *options_.cost).iteration_s;
  return at_best_s < (1 - kClearlyBetter) * as_it_is_s ? best : planned_;
}

// An update by the caller runs bucket by bucket after the exchanges, as fast as it ran after a single one. If the
// partition stays the same, so does the time after the last exchange.
double Planner::predicted_s(const schedule::Evaluation& exchanges) const {
  const double tail_s = measurements_.front().tail_s;
  if (!weighs_times_) return exchanges.iteration_s + tail_s;
  const auto bytes = static_cast<double>(bytes_of(sizes_, {0, sizes_.layers.size() - 1}));
  double end_s = exchanges.compute_s;
  for (const schedule::BucketTiming& timing : exchanges.timings)
    end_s = std::max(end_s, timing.end_s) + tail_s * static_cast<double>(timing.bytes) / bytes;
  return end_s;
}

void Planner::adopt(schedule::Partition partition) {
  forecast_.emplace(Forecast{evaluate(timeline_, partition, *options_.cost), 0});
  forecast_->step_s = predicted_s(forecast_->exchanges);
  planned_ = std::move(partition);
  if (policy_.needs != schedule::Needs::events) partition_ = planned_;
  measurements_.clear();
  at_first_.reset();
  enter(Stage::running);
}

Planner::StepTimes Planner::step_times() const {
  const std::vector<StepRecord> steps(records_.begin(), records_.end());
  const Measurement seen = measurement_of(steps);
  StepTimes result{.ready_s = seen.ready_s};
  const double first_s = *std::ranges::min_element(seen.ready_s);
  for (double& ready_s : result.ready_s) ready_s -= first_s;
  std::vector<double> exchanges, ends;
  for (const StepRecord& step : steps) {
    double sum_s = 0;
    for (const schedule::BucketTiming& timing : step.exchanges) sum_s += timing.end_s - timing.begin_s;
    exchanges.push_back(sum_s);
    ends.push_back(step.end_s);
  }
  result.exchange_s = schedule::median(std::move(exchanges));
  result.step_s = schedule::median(std::move(ends));
  return result;
}

bool Planner::has_drifted() {
  const StepTimes now = step_times();
  if (!at_first_) {
    at_first_ = now;
    return false;
  }
  const double noticeable_s = kNoticeable * at_first_->step_s;
  if (differs(now.exchange_s, at_first_->exchange_s, noticeable_s)) return true;
  const double backward_s = *std::ranges::max_element(at_first_->ready_s);
  for (std::size_t i = 0; i < now.ready_s.size(); ++i)
    if (std::abs(now.ready_s[i] - at_first_->ready_s[i]) > std::max(kDrift * backward_s, noticeable_s)) return true;
  return false;
}

// Doubles the interval each time, so that a machine whose times keep changing is not measured all the time.
void Planner::measure_again() {
  interval_ = std::max(interval_, std::min(2 * interval_, kRarestCheck));
  partition_ = by("single");
  forecast_.reset();
  enter(Stage::alone);
}

}  // namespace syncopate::sync::planning
