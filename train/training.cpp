// Training: how a rank starts, from its options, its data and rank 0's state.
#include "training.hpp"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ranks/equal.hpp"
#include "record/sealed_file.hpp"
#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/synchronizer.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::train {
namespace {

/// The synchronizer accumulates the momentum of gradients, and the optimizer adds none.
bool has_momentum_correction(const Options& o) { return o.feedback.kind == "momentum" && o.exchange != "none"; }

/// The bound on the averaged gradient. With momentum correction averages are velocities, and gradients are clipped
/// before.
double global_clip(const Options& o, const Model& model) {
  return o.clip.value_or(has_momentum_correction(o) ? 0 : model.clip);
}

/// Lin et al., section 3.2: a bound on the average of N gradients becomes one on each, √N times as large. (They say
/// 1/√N of what has already been divided by N: where the ranks' gradients are independent, the average of N of norm g
/// has norm g/√N.)
FeedbackOptions feedback_options(const Options& o, const Model& model, int ranks) {
  FeedbackOptions feedback = o.feedback;
  if (o.momentum) feedback.momentum = *o.momentum;
  feedback.nesterov = o.nesterov;
  const double usual = has_momentum_correction(o) ? model.clip * std::sqrt(ranks) : 0;
  feedback.clip_norm = o.local_clip.value_or(usual);
  return feedback;
}

RateSchedule schedule_of(const Options& o, const Model& model) {
  return {.learning_rate = o.learning_rate.value_or(model.learning_rate),
          .warmup = o.warmup.value_or(model.warmup),
          .milestones = o.milestones,
          .decay = o.decay};
}

}  // namespace

Training::Training(Group& group, const Place& place, const Options& options)
    : group_(group),
      place_(place),
      options_(options),
      model_(model_named(options.model)),
      updater_(updater_of(options.exchange)),
      schedule_(schedule_of(options, model_)),
      output_(options, place.rank, place.ranks),
      notices_(group, options.exchange == "none") {
  at::set_num_threads(options.threads);
  at::set_num_interop_threads(1);
  require(options.global_batch == 0 || options.global_batch >= static_cast<std::uint64_t>(place.ranks),
          "--global-batch {} is smaller than the number of ranks, {}", options.global_batch, place.ranks);
  data_ = open_data(model_, options);
  require_side(model_, data_->side(), options.resolution);
  require_equal(group,
                {{{"the number of training samples in --data", std::to_string(data_->training_samples())},
                  {"the number of held-out samples in --data", std::to_string(data_->evaluation_samples())}}},
                "give every rank the same data");
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
  SynchronizerOptions exchange{.policy = options.policy,
                               .cost = {},
                               .check_every = options.check_every,
                               .fusion_bytes = options.fusion_bytes,
                               .codec = options.codec,
                               .feedback = feedback_options(options, model_, place.ranks),
                               .dense_below = options.dense_below,
                               .exchange = options.exchange,
                               .algorithm = options.algorithm,
                               .zero_missing = options.zero_missing,
                               .clip_norm = global_clip(options, model_),
                               .code_ahead = !options.code_inline,
                               .trace = &trace_,
                               .clock_s = nullptr,
                               .weights = {},
                               .update = nullptr,
                               .broadcast_every = options.broadcast_every};
  if (chooses_codecs(options.codec)) choose_codecs(exchange);
  if (!options.cluster.empty()) weigh(exchange);
  share_optimizer_state();
  if (is_served() && place_.rank == 0) output_.clear_folder();  // before any other worker can have begun
  if (updater_ != Updater::caller)
    exchange.update = [this](std::size_t first, std::size_t last) { update(first, last); };
  std::unique_ptr<ServedWeights> served = is_served() ? serve(network_, options) : nullptr;
  gradients_ = std::make_unique<Gradients>(
      group_, network_, std::move(exchange),
      Gradients::Manner{options.serial, options.share_norms, std::move(served), codecs_.by_gradient()});
  if (!options.resume.empty()) restore_codec_state();
  gradients_->watch([this](const std::string& name) { found_not_finite("the gradient of " + name, name); });
}

/// For every bucket the cheapest codec of those that are allowed, by rank 0's cluster file.
void Training::choose_codecs(SynchronizerOptions& exchange) {
  require(
      !options_.cluster.empty(),
      "--codec {} without --cluster; allowed: with the file of `syncopate fit --codec {}`, by which codecs are weighed",
      options_.codec, fmt::join(codec_ways(options_.codec), ","));
  Cluster cluster = read_cluster(options_.cluster);
  const auto cost_of = [&, file = cluster](const ExchangeLaw& law, std::uint64_t bytes) {
    return exchange_cost(file, place_.ranks, bytes, law);
  };
  cluster.ranks = place_.ranks;
  cluster.ranks_per_host = std::min(cluster.ranks_per_host, place_.ranks);
  codecs_ = ChosenCodecs(group_, codec_ways(options_.codec),
                         syncopate::choose_codecs(gradients_of(network_), exchange, cluster, cost_of));
  exchange.codec = "none";
  if (place_.rank == 0 && !codecs_.unused().empty())
    output_.warn(fmt::format("not used, because every bucket is predicted to take longer: {}", codecs_.unused()));
}

/// Costs of exchanges by the cluster file; a codec that is slower than none by rank 0's file is not used.
void Training::weigh(SynchronizerOptions& exchange) {
  const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(parameters_.numel());
  Cluster cluster = read_cluster(options_.cluster);
  const auto cost_of = [&](const SynchronizerOptions& options) {
    cluster.ranks_per_host = std::min(cluster.ranks_per_host, place_.ranks);
    Cluster here = cluster;
    here.ranks = place_.ranks;
    return exchange_cost(cluster, place_.ranks, bytes, exchange_law(gradients_of(network_), options, here));
  };
  exchange.cost = cost_of(exchange);
  if (exchange.codec == "none") return;
  SynchronizerOptions plain = exchange;
  plain.codec = "none";
  plain.feedback = {};
  plain.clip_norm = options_.clip.value_or(model_.clip);
  ExchangeCost plain_cost = cost_of(plain);
  std::array<double, 2> seconds{exchange.cost->table.back().second, plain_cost.table.back().second};
  broadcast(group_, std::span<double>(seconds), {.name = "predicted exchanges"});
  if (seconds[0] < seconds[1] || options_.force) return;
  if (place_.rank == 0)
    output_.warn(
        fmt::format("codec {} is not used: exchanging all gradients is predicted to take {} with it and {} without; "
                    "--force uses it all the same",
                    exchange.codec, format_seconds(seconds[0]), format_seconds(seconds[1])));
  refused_codec_ = exchange.codec;
  plain.cost = std::move(plain_cost);
  exchange = std::move(plain);
}

StateOf Training::place_of_state(const std::string& checkpoint) const {
  const auto bytes = static_cast<std::size_t>(4 * parameters_.numel());
  return {.file = checkpoint,
          .step = state_.progress.step,
          .parameters = XXH3_64bits(parameters_.const_data_ptr<float>(), bytes),
          .rank = place_.rank,
          .ranks = place_.ranks};
}

/// All ranks go on with what their codecs kept, or none does: a residual without the others' is no loss that anyone
/// could account for.
void Training::restore_codec_state() {
  const SavedCodecState fresh = gradients_->codec_state();
  if (is_empty(fresh)) return;
  FoundState found = find_codec_state(place_of_state(options_.resume), fresh.codec);
  std::int32_t missing = found.state ? 0 : 1;
  allreduce(group_, std::span(&missing, 1), {.name = "ranks without their codec's state"});
  if (missing == 0) return gradients_->restore(*found.state);
  if (!found.state) output_.warn(fmt::format("no codec state: {}", found.reason));
  if (place_.rank == 0)
    output_.warn(
        fmt::format("{} of {} ranks have no codec state to go on with: what the codec had left out of earlier "
                    "gradients is lost, and it starts with nothing kept on every rank",
                    missing, place_.ranks));
}

/// A rank that cannot write says so, and training goes on.
void Training::save_codec_state() {
  const SavedCodecState state = gradients_->codec_state();
  if (is_empty(state)) return;
  try {
    train::save_codec_state(place_of_state(options_.checkpoint), state);
  } catch (const SystemFailure& failure) {
    output_.warn(fmt::format("the codec's state is not saved: {}", failure.what()));
  }
}

/// Seed and position come before the network, whose initial values the seed decides; tensors come after it.
void Training::share_initial_state() {
  state_.sizes.classes = data_->classes() > 0 ? data_->classes() : model_.classes;
  const bool resumes = !options_.resume.empty(), first = place_.rank == 0;
  if (resumes && first) {
    resumed_ = load_checkpoint(options_.resume);
    require(!options_.seed || *options_.seed == resumed_.state.seed, "--seed {} differs from the checkpoint's, {}",
            options_.seed.value_or(0), resumed_.state.seed);
    state_.seed = resumed_.state.seed;
    state_.progress = resumed_.state.progress;
  }
  input::Progress& at = state_.progress;
  std::array<std::int64_t, 4> words{};
  const std::array<std::uint64_t*, 4> fields{&state_.seed, &at.step, &at.epoch, &at.sample};
  for (std::size_t i = 0; i < fields.size(); ++i) words[i] = static_cast<std::int64_t>(*fields[i]);
  broadcast(group_, std::span<std::int64_t>(words), {.name = "run state"});
  for (std::size_t i = 0; i < fields.size(); ++i) *fields[i] = static_cast<std::uint64_t>(words[i]);

  Builder builder(state_.seed);
  network_ = model_.build(builder, state_.sizes);
  parameters_ = gather_in_one_memory(network_.parameters);
  buffers_ = gather_in_one_memory(network_.buffers);
  if (resumes && first) {
    require_fits(resumed_, state_, network_);
    parameters_.copy_(resumed_.parameters);
    buffers_.copy_(resumed_.buffers);
  }
  std::vector<Buffer> state{view_of(parameters_)};
  if (buffers_.numel() > 0) state.push_back(view_of(buffers_));
  broadcast_all(group_, state);
}

/// After it is decided whether gradients come with their momentum. A rank that never updates has no state.
void Training::share_optimizer_state() {
  OptimizerOptions options = optimizer_options(options_);
  options.corrected = has_momentum_correction(options_) && refused_codec_.empty();
  const bool is_sharded = updater_ == Updater::shards;
  if (is_sharded || options_.share_norms) options.shared = shared_work(group_, network_, is_sharded);
  if (is_sharded) shards_ = options.shared->shards;
  optimizer_ = optimizer_for(network_, std::move(options));
  if (is_sharded) {
    if (!options_.resume.empty()) scatter(group_, *shards_, resumed_.kept, *optimizer_);
    resumed_ = {};
    return;
  }
  if (!options_.resume.empty() && place_.rank == 0) restore(*optimizer_, resumed_.kept);
  resumed_ = {};
  if (updater_ == Updater::root) return;
  std::vector<Buffer> state;
  for (const OptimizerState& kept : optimizer_->state()) state.emplace_back(kept.values);
  if (!state.empty()) broadcast_all(group_, state);
}

Json Training::description() const {
  Json layers = Json::array(), buckets = Json::array();
  for (const auto& [name, value] : network_.parameters) layers.push_back({{"name", name}, {"elements", value.numel()}});
  for (const BucketInfo& bucket : gradients_->buckets())
    buckets.push_back({{"first", bucket.first}, {"last", bucket.last}, {"bytes", bucket.bytes}});
  codecs_.describe(buckets);
  Json run{{"model", options_.model},
           {"data", options_.data},
           {"ranks", place_.ranks},
           {"transport", group_.transport()},
           {"policy", options_.policy},
           {"codec", refused_codec_.empty() ? options_.codec : "none"},
           {"exchange", options_.exchange},
           {"optimizer", optimizer_->rule()},
           {"algorithm", options_.algorithm},
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
           {"gradient_bytes", gradients_->bytes()},
           {"command", options_.command},
           {"layers", layers},
           {"buckets", buckets}};
  if (!refused_codec_.empty()) run["refused_codec"] = refused_codec_;
  if (!codecs_.unused().empty()) run["unused_codecs"] = codecs_.unused();
  if (options_.origin_rate > 0) run["origin_rate"] = options_.origin_rate;
  if (is_served()) run["consistency"] = options_.consistency;
  if (is_served()) run["placement"] = options_.placement;
  if (updater_ == Updater::every_rank) run["broadcast_every"] = options_.broadcast_every;
  return run;
}

}  // namespace syncopate::train
