// Training: how a rank starts, what it does between steps, and how it ends.
#include "training.hpp"

#include <ATen/Parallel.h>
#include <xxhash.h>

#include <algorithm>
#include <array>

#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::train {
namespace {

Buffer view_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel()), DType::f32};
}

std::string digest_of(const at::Tensor& parameters) {
  return fmt::format("{:016x}",
                     XXH3_64bits(parameters.const_data_ptr<float>(), 4 * static_cast<std::size_t>(parameters.numel())));
}

SgdOptions sgd_options(const Options& o, const Model& model) {
  return {.learning_rate = o.learning_rate.value_or(model.learning_rate),
          .momentum = o.momentum,
          .weight_decay = o.weight_decay,
          .nesterov = o.nesterov,
          .warmup = o.warmup.value_or(model.warmup),
          .milestones = o.milestones,
          .decay = o.decay};
}

}  // namespace

Training::Training(Group& group, const Options& options)
    : group_(group),
      options_(options),
      model_(model_named(options.model)),
      updater_(updater_of(options.exchange)),
      output_(options, group.rank(), group.size()) {
  at::set_num_threads(options.threads);
  at::set_num_interop_threads(1);
  require(options.global_batch == 0 || options.global_batch >= static_cast<std::uint64_t>(group.size()),
          "--global-batch {} is smaller than the number of ranks, {}", options.global_batch, group.size());
  data_ = open_data(model_, options.data, options.sizes.context);
  state_ = {.model = options.model,
            .sizes = options.sizes,
            .seed = options.seed.value_or(1),
            .training_samples = data_->training_samples(),
            .progress = {}};
  if (!options.checkpoint.empty() && group.rank() == 0) require_writable(options.checkpoint);
  share_initial_state();
  order_ = std::make_unique<Order>(data_->training_samples(), state_.seed);
  SynchronizerOptions exchange{.policy = options.policy,
                               .cost = {},
                               .check_every = options.check_every,
                               .fusion_bytes = options.fusion_bytes,
                               .codec = options.codec,
                               .exchange = options.exchange,
                               .algorithm = options.algorithm,
                               .zero_missing = options.zero_missing,
                               .clip_norm = options.clip.value_or(model_.clip),
                               .trace = &trace_,
                               .clock_s = nullptr,
                               .weights = {},
                               .update = nullptr,
                               .broadcast_every = options.broadcast_every};
  if (!options.cluster.empty())
    exchange.cost = exchange_cost(read_cluster(options.cluster), group_.size(),
                                  4 * static_cast<std::uint64_t>(parameters_.numel()));
  if (updater_ != Updater::caller)
    exchange.update = [this](std::size_t first, std::size_t last) { update(first, last); };
  gradients_ = std::make_unique<Gradients>(group_, network_, std::move(exchange), options.serial);
}

/// Seed and position come before the network, whose initial values the seed decides; tensors come after it.
void Training::share_initial_state() {
  const bool resumes = !options_.resume.empty(), first = group_.rank() == 0;
  if (resumes && first) {
    resumed_ = load_checkpoint(options_.resume);
    require(!options_.seed || *options_.seed == resumed_.state.seed, "--seed {} differs from the checkpoint's, {}",
            options_.seed.value_or(0), resumed_.state.seed);
    state_.seed = resumed_.state.seed;
    state_.progress = resumed_.state.progress;
  }
  Progress& at = state_.progress;
  std::array<std::int64_t, 4> words{};
  const std::array<std::uint64_t*, 4> fields{&state_.seed, &at.step, &at.epoch, &at.sample};
  for (std::size_t i = 0; i < fields.size(); ++i) words[i] = static_cast<std::int64_t>(*fields[i]);
  broadcast(group_, std::span<std::int64_t>(words), {.name = "run state"});
  for (std::size_t i = 0; i < fields.size(); ++i) *fields[i] = static_cast<std::uint64_t>(words[i]);

  Builder builder(state_.seed);
  network_ = model_.build(builder, options_.sizes);
  parameters_ = gather_in_one_memory(network_.parameters);
  buffers_ = gather_in_one_memory(network_.buffers);
  for (std::size_t i = 0, offset = 0; i < network_.parameters.size(); ++i) {
    offsets_.push_back(offset);
    offset += static_cast<std::size_t>(network_.parameters[i].value.numel());
  }
  sgd_ = std::make_unique<Sgd>(parameters_, sgd_options(options_, model_), updater_ != Updater::root || first);
  if (resumes && first) {
    require_fits(resumed_, state_, network_);
    parameters_.copy_(resumed_.parameters);
    sgd_->velocity().copy_(resumed_.velocity);
    buffers_.copy_(resumed_.buffers);
    resumed_ = {};
  }
  std::vector<Buffer> state{view_of(parameters_)};
  if (updater_ != Updater::root) state.push_back(view_of(sgd_->velocity()));
  if (buffers_.numel() > 0) state.push_back(view_of(buffers_));
  broadcast_all(group_, state);
}

Json Training::description() const {
  Json layers = Json::array(), buckets = Json::array();
  for (const auto& [name, value] : network_.parameters) layers.push_back({{"name", name}, {"elements", value.numel()}});
  for (const BucketInfo& bucket : gradients_->buckets())
    buckets.push_back({{"first", bucket.first}, {"last", bucket.last}, {"bytes", bucket.bytes}});
  Json run{{"model", options_.model},
           {"data", options_.data},
           {"ranks", group_.size()},
           {"transport", group_.transport()},
           {"policy", options_.policy},
           {"codec", options_.codec},
           {"exchange", options_.exchange},
           {"algorithm", options_.algorithm},
           {"serial", options_.serial},
           {"batch", samples_per_step() / static_cast<std::size_t>(group_.size())},
           {"global_batch", samples_per_step()},
           {"accumulate", options_.accumulate},
           {"steps", last_step()},
           {"threads", options_.threads},
           {"seed", state_.seed},
           {"training_samples", data_->training_samples()},
           {"evaluation_samples", data_->evaluation_samples()},
           {"parameters", parameters_.numel()},
           {"gradient_bytes", gradients_->bytes()},
           {"command", options_.command},
           {"layers", layers},
           {"buckets", buckets}};
  if (updater_ == Updater::every_rank) run["broadcast_every"] = options_.broadcast_every;
  return run;
}

std::size_t Training::samples_per_step() const {
  if (options_.global_batch) return options_.global_batch;
  return options_.batch * options_.accumulate * static_cast<std::size_t>(group_.size());
}

bool Training::done() const {
  return (options_.steps && state_.progress.step >= *options_.steps) ||
         (options_.epochs && state_.progress.epoch >= *options_.epochs);
}

std::uint64_t Training::last_step() const {
  const std::size_t batch = samples_per_step(), samples = data_->training_samples();
  const Progress& at = state_.progress;
  std::uint64_t last = options_.steps.value_or(UINT64_MAX);
  if (options_.epochs && at.epoch < *options_.epochs) {
    const std::uint64_t rest_of_epoch = (samples - at.sample + batch - 1) / batch;
    last =
        std::min(last, at.step + rest_of_epoch + (*options_.epochs - at.epoch - 1) * ((samples + batch - 1) / batch));
  }
  return done() ? at.step : last;
}

void Training::run() {
  if (group_.rank() == 0) output_.clear_folder();
  barrier(group_);
  output_.open_folder();
  output_.begin(description());
  const std::uint64_t first = state_.progress.step + 1, last = last_step();
  const std::uint64_t followed = reaches_into_next_step() && last > first ? last - 1 : last;
  traced_ = options_.out.empty() ? 0 : options_.trace_step.value_or(std::min(first + 9, followed));
  EndRow end;
  while (!done()) {
    if (!reaches_into_next_step() && state_.progress.step + 1 == traced_) begin_trace();
    end.rows.push_back(step());
    if (!reaches_into_next_step()) end_trace();
    output_.step(end.rows.back(), last);
    after_step();
  }
  settle();
  if (!evaluation_ && options_.evaluate_every != 0u) evaluation_ = evaluate();
  if (!options_.checkpoint.empty()) save();
  barrier(group_);
  end.steps = state_.progress.step;
  end.evaluation = evaluation_;
  end.digest = digest_of(parameters_);
  output_.end(end);
  barrier(group_);  // no rank leaves while another may still need it
}

/// Ranks have clocks of their own: they begin together.
void Training::begin_trace() {
  barrier(group_);
  trace_.restart();
}

void Training::end_trace() {
  if (!trace_.running()) return;
  trace_.stop();
  output_.trace(trace_.spans());
  output_.record(description());  // with the buckets of this step
}

/// Where an exchange reaches into the next step, the traced one is from backward pass to backward pass.
void Training::settle() {
  gradients_->settle();
  if (reaches_into_next_step()) end_trace();
}

void Training::after_step() {
  const Progress& at = state_.progress;
  evaluation_.reset();
  const bool epoch_ended = at.sample == 0;
  const bool due =
      options_.evaluate_every ? *options_.evaluate_every > 0 && at.step % *options_.evaluate_every == 0 : epoch_ended;
  if (due) {
    evaluation_ = evaluate();
    const double part = static_cast<double>(at.sample) / static_cast<double>(order_->samples());
    output_.epoch(static_cast<double>(at.epoch) + part, at.step, *evaluation_);
  }
  const bool saves = options_.checkpoint_every > 0 && at.step % options_.checkpoint_every == 0;
  if (saves && !done()) save();  // the last one is written at the end
}

void Training::average_statistics() {
  if (alone() || group_.size() == 1 || buffers_.numel() == 0) return;
  allreduce(group_, view_of(buffers_), {.op = ReduceOp::average, .name = "batch-norm statistics"});
}

void Training::save() {
  settle();
  average_statistics();
  if (group_.rank() != 0) return;
  save_checkpoint(options_.checkpoint, {state_, layout_of(network_), parameters_, sgd_->velocity(), buffers_});
  output_.note(fmt::format("checkpoint {} at step {}", options_.checkpoint, state_.progress.step));
}

}  // namespace syncopate::train
