// The start of a run: its settings and its data are checked, and compared between ranks.
#include "run.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "ranks/equal.hpp"
#include "require.hpp"

namespace syncopate::train {
namespace {

RateSchedule schedule_of(const Options& o, const Model& model) {
  return {.learning_rate = o.learning_rate.value_or(model.learning_rate),
          .warmup = o.warmup.value_or(model.warmup),
          .milestones = o.milestones,
          .decay = o.decay};
}

/// One setting per class, so that the error names the first class that differs: ranks must number classes alike.
std::vector<Setting> settings_of(const Data& data) {
  std::vector<Setting> settings{{"the number of training samples in --data", std::to_string(data.training_samples())},
                                {"the number of held-out samples in --data", std::to_string(data.evaluation_samples())},
                                {"the number of classes in --data", std::to_string(data.class_names().size())}};
  for (const std::string& name : data.class_names())
    settings.push_back({fmt::format("the class of label {} in --data", settings.size() - 3), name});
  return settings;
}

}  // namespace

Run::Run(Group& joined, const Place& here, const Options& given)
    : group(joined),
      place(here),
      options(given),
      model(model_named(given.model)),
      schedule(schedule_of(given, model)),
      parts(parts_of(given)),
      output(given, here.rank, here.ranks),
      sizes(given.sizes),
      notices(joined, given.sync.exchange == "none") {
  at::set_num_threads(options.threads);
  at::set_num_interop_threads(1);
  require(options.global_batch == 0 || options.global_batch >= static_cast<std::uint64_t>(place.ranks),
          "--global-batch {} is smaller than the number of ranks, {}", options.global_batch, place.ranks);
  require(!options.slow || options.slow->rank < place.ranks, "--slow names rank {}; allowed: 0 to {}",
          options.slow ? options.slow->rank : 0, place.ranks - 1);
  data = open_data(model, options);
  require_possible_sides();
  require_equal(group, settings_of(*data), "give every rank the same data");
  sizes.classes = data->classes() > 0 ? data->classes() : model.classes;
  sizes.side = data->side(parts.front().options.resolution);
}

void Run::require_possible_sides() const {
  const int first = data->side(parts.front().options.resolution);
  for (const Part& part : parts)
    in_part(part, [&] {
      const int side = data->side(part.options.resolution);
      require_side(model, side, part.options.resolution);
      require(!model.one_side || side == first,
              "model {} has images of {} pixels each way here and of {} in the first part; its weights depend on the "
              "number of pixels: give all parts the same resolution",
              model.name, side, first);
    });
}

bool Run::done(const input::Progress& at) const {
  return (options.steps && at.step >= *options.steps) || (options.epochs && at.epoch >= *options.epochs);
}

std::uint64_t Run::last_step(const input::Progress& at) const {
  if (done(at)) return at.step;
  const std::uint64_t last = options.steps.value_or(UINT64_MAX);
  if (!options.epochs) return last;
  return std::min(last, at.step + steps_left(parts, at, data->training_samples(), place.ranks));
}

double Run::epochs_trained(const input::Progress& at) const {
  return static_cast<double>(at.epoch) + static_cast<double>(at.sample) / static_cast<double>(data->training_samples());
}

void Run::exchange_notices() {
  notices.signal_came(interrupt->signal());
  notices.exchange(last_step_s);
  say_notices();
}

void Run::exchange_notices_when_due() {
  notices.signal_came(interrupt->signal());
  notices.exchange_when_due(last_step_s);
  say_notices();
}

void Run::say_notices() {
  if (const std::string line = notices.take_not_finite(); !line.empty()) output.warn(line);
}

void Run::found_not_finite(std::uint64_t step, const std::string& what, const std::string& gradient) {
  const std::string text = fmt::format(
      "{} is not finite at step {} on rank {}: lower --lr, lengthen --warmup, or give --clip", what, step, place.rank);
  if (options.stop_on_nan) throw NotFinite(text, {place.rank, place.rank, "training", gradient});
  notices.not_finite(step, text + " (--stop-on-nan ends a run there)");
}

}  // namespace syncopate::train
