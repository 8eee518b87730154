// The start of a rank's training, from its options, its data and rank 0's state.
#include "training.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <array>

#include "ranks/equal.hpp"
#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/tooling/sealed_file.hpp"

namespace syncopate::train {
namespace {

/// Name that `simulate` gives to the order of pushes: each gradient when it is ready, front layers first.
constexpr const char* kServedPolicy = "front_first";

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

Training::Training(Group& group, const Place& place, const Options& options)
    : group_(group),
      place_(place),
      options_(options),
      model_(model_named(options.model)),
      schedule_(schedule_of(options, model_)),
      parts_(parts_of(options)),
      output_(options, place.rank, place.ranks),
      context_{group_, place_, model_, network_, trace_, output_},
      part_(&parts_.front()),
      notices_(group, options.exchange == "none") {
  at::set_num_threads(options.threads);
  at::set_num_interop_threads(1);
  require(options.global_batch == 0 || options.global_batch >= static_cast<std::uint64_t>(place.ranks),
          "--global-batch {} is smaller than the number of ranks, {}", options.global_batch, place.ranks);
  require(!options.slow || options.slow->rank < place.ranks, "--slow names rank {}; allowed: 0 to {}",
          options.slow ? options.slow->rank : 0, place.ranks - 1);
  data_ = open_data(model_, options);
  require_possible_sides();
  require_equal(group, settings_of(*data_), "give every rank the same data");
  state_ = {.model = options.model,
            .sizes = options.sizes,
            .seed = options.seed.value_or(1),
            .training_samples = data_->training_samples(),
            .progress = {}};
  if (!options.checkpoint.empty() && place.rank == 0) require_writable(options.checkpoint);
  share_initial_state();
  require(!options.trace_step || (*options.trace_step > state_.progress.step && *options.trace_step <= last_step()),
          "--trace-step {}: this run trains steps {} to {}", options.trace_step.value_or(0), state_.progress.step + 1,
          last_step());
  order_ = std::make_unique<input::Order>(data_->training_samples(), state_.seed);
  plan_exchanges();
  if (is_served() && place_.rank == 0) output_.clear_folder();  // before any other worker can begin
  warn_about_data();
  begin_descent(goes_on_ ? std::optional(std::move(resumed_.kept)) : std::nullopt);
  resumed_ = {};
  go_on_with_servers();
  if (goes_on_) find_codec_state();
}

void Training::require_possible_sides() const {
  for (const Part& part : parts_)
    in_part(part, [&] { require_side(model_, data_->side(part.options.resolution), part.options.resolution); });
}

/// Plans all parts, so that an impossible part is an error before the first step.
void Training::plan_exchanges() {
  for (const Part& part : parts_) in_part(part, [&] { plans_.push_back(plan_exchange(context_, part.options)); });
}

/// Seed and position precede the network, because the seed decides its initial values; tensors follow it.
void Training::share_initial_state() {
  state_.sizes.classes = data_->classes() > 0 ? data_->classes() : model_.classes;
  const bool first = place_.rank == 0 || is_served();  // workers are not a group and cannot share the state
  goes_on_ = !options_.resume.empty() && first;
  if (goes_on_) {
    resumed_ = load_checkpoint(options_.resume);
    require(!options_.seed || *options_.seed == resumed_.state.seed, "--seed {} differs from the checkpoint's, {}",
            options_.seed.value_or(0), resumed_.state.seed);
    state_.seed = resumed_.state.seed;
    state_.progress = resumed_.state.progress;
  }
  input::Progress& at = state_.progress;
  std::uint64_t goes_on = goes_on_ ? 1 : 0;
  std::array<std::int64_t, 5> words{};
  const std::array<std::uint64_t*, 5> fields{&state_.seed, &at.step, &at.epoch, &at.sample, &goes_on};
  for (std::size_t i = 0; i < fields.size(); ++i) words[i] = static_cast<std::int64_t>(*fields[i]);
  broadcast(group_, std::span<std::int64_t>(words), {.name = "run state"});
  for (std::size_t i = 0; i < fields.size(); ++i) *fields[i] = static_cast<std::uint64_t>(words[i]);
  goes_on_ = goes_on != 0;
  part_ = &part_at(parts_, at.epoch);

  Builder builder(state_.seed);
  network_ = model_.build(builder, state_.sizes);
  parameters_ = gather_in_one_memory(network_.parameters);
  buffers_ = gather_in_one_memory(network_.buffers);
  if (goes_on_ && first) {
    require_fits(resumed_, state_, network_);
    parameters_.copy_(resumed_.parameters);
    buffers_.copy_(resumed_.buffers);
  }
  std::vector<Buffer> state{view_of(parameters_)};
  if (buffers_.numel() > 0) state.push_back(view_of(buffers_));
  broadcast_all(group_, state);
}

void Training::warn_about_data() {
  if (place_.rank != 0) return;
  if (goes_on_) output_.note(fmt::format("resumes from step {} of {}", state_.progress.step, options_.resume));
  const std::size_t samples = data_->training_samples(), classes = data_->class_names().size();
  for (const Part& part : parts_)
    if (const std::size_t wanted = train::samples_per_step(part, place_.ranks); wanted > samples)
      output_.warn(fmt::format("a step of {} samples is more than the {} of --data: each step has {}", wanted, samples,
                               samples));
  if (classes > 0 && static_cast<std::size_t>(state_.sizes.classes) != classes)
    output_.warn(fmt::format("model {} has {} classes, --data has {}", options_.model, state_.sizes.classes, classes));
}

Json Training::description() const {
  const Options& now = part_->options;
  const ExchangePlan& plan = descent_->plan();
  Json layers = Json::array(), buckets = Json::array();
  for (const auto& [name, value] : network_.parameters) layers.push_back({{"name", name}, {"elements", value.numel()}});
  for (const BucketInfo& bucket : descent_->gradients().buckets())
    buckets.push_back({{"first", bucket.first}, {"last", bucket.last}, {"bytes", bucket.bytes}});
  plan.codecs.describe(buckets);
  Json run{{"model", options_.model},
           {"data", options_.data},
           {"ranks", place_.ranks},
           {"transport", is_served() ? "grpc" : group_.transport()},
           {"policy", is_served() ? kServedPolicy : options_.policy},
           {"codec", plan.refused_codec.empty() ? now.codec : "none"},
           {"exchange", now.exchange},
           {"optimizer", descent_->rule()},
           {"algorithm", now.algorithm},
           {"serial", options_.serial},
           {"batch", samples_per_step() / static_cast<std::size_t>(place_.ranks)},
           {"global_batch", samples_per_step()},
           {"accumulate", options_.accumulate},
           {"steps", last_step()},
           {"threads", options_.threads},
           {"seed", state_.seed},
           {"training_samples", data_->training_samples()},
           {"evaluation_samples", data_->evaluation_samples()},
           {"parameters", parameters_.numel()},
           {"gradient_bytes", descent_->gradients().bytes()},
           {"command", options_.command},
           {"layers", layers},
           {"buckets", buckets}};
  if (!plan.refused_codec.empty()) run["refused_codec"] = plan.refused_codec;
  if (!plan.codecs.unused().empty()) run["unused_codecs"] = plan.codecs.unused();
  if (options_.origin_rate > 0) run["origin_rate"] = options_.origin_rate;
  if (is_served()) run["consistency"] = options_.consistency;
  if (is_served()) run["placement"] = options_.placement;
  if (descent_->updater() == Updater::every_rank) run["broadcast_every"] = options_.broadcast_every;
  if (!options_.recipe) return run;
  run["recipe"] = options_.recipe_file;
  run["part"] = part_->number;
  for (const Part& part : parts_) run["parts"].push_back(row_of(part));
  return run;
}

}  // namespace syncopate::train
