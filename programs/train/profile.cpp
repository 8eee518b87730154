// A profile: steps on a synthetic batch, timed by the hooks that report gradients in training.
#include "profile.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>

#include "record/output.hpp"
#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/standard_streams.hpp"
#include "syncopate/tooling/units.hpp"
#include "update/gradients.hpp"
#include "update/optimizer.hpp"

namespace syncopate::train {
namespace {

constexpr std::uint64_t kWarmUp = 5;  ///< steps that warm up caches and touch memory first

/// A layer: parameters of one name up to its last dot, like "fc.weight" and "fc.bias".
struct TimedLayer {
  std::string name;
  std::size_t elements = 0;
  std::size_t rows = 0;            ///< of its weights as a matrix; 0: the layer has vectors only
  std::vector<double> backward_s;  ///< by step
};

std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

int side_of(const Model& model, const Options& options) {
  return options.resolution > 0 ? options.resolution : model.side;
}

std::pair<at::Tensor, at::Tensor> made_up_batch(const Model& model, const Options& options) {
  const auto batch = static_cast<std::int64_t>(options.batch);
  const int side = side_of(model, options);
  require_side(model, side, options.resolution);
  if (model.input == DataKind::images)
    return {at::randn({batch, 3, side, side}), at::randint(model.classes, {batch}, at::kLong)};
  const std::int64_t context = options.sizes.context;
  return {at::randint(256, {batch, context}, at::TensorOptions().dtype(at::kLong)),
          at::randint(256, {batch * context}, at::TensorOptions().dtype(at::kLong))};
}

class Profiler final {
 public:
  Profiler(Group& group, const Options& options) : model_(model_named(options.model)) {
    Builder builder(options.seed.value_or(1));
    ModelOptions sizes = options.sizes;
    sizes.classes = model_.classes;
    sizes.side = side_of(model_, options);
    network_ = model_.build(builder, sizes);
    parameters_ = gather_in_one_memory(network_.parameters);
    std::tie(input_, target_) = made_up_batch(model_, options);
    gradients_ = std::make_unique<Gradients>(group, network_, SynchronizerOptions{.exchange = "none", .trace = &trace_},
                                             Gradients::Mode{});
    optimizer_ = optimizer_for(network_, optimizer_options(options));
    for (const auto& [name, value] : network_.parameters) {
      if (layers_.empty() || layers_.back().name != layer_of(name)) layers_.push_back({layer_of(name), 0, 0, {}});
      layers_.back().elements += static_cast<std::size_t>(value.numel());
      if (value.dim() > 1) layers_.back().rows = static_cast<std::size_t>(value.size(0));
    }
  }

  void step(bool counts) {
    trace_.restart();
    const at::Tensor loss = network_.loss(input_, target_);
    const double forward_end_s = trace_.now_s();
    gradients_->begin_backward(true);
    loss.backward();
    const double backward_end_s = trace_.now_s();
    std::map<std::string, double> by_layer;
    for (const Span& span : trace_.spans()) by_layer[layer_of(span.name)] += span.end_s - span.begin_s;
    gradients_->finish([&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i <= last; ++i)  // a rate of 0 keeps the weights: the batch is noise
        optimizer_->update(i, gradients_->values(i), {.rate = 0, .step = 1});
    });
    const double end_s = trace_.now_s();
    trace_.stop();
    if (!counts) return;
    forward_s_.push_back(forward_end_s);
    step_s_.push_back(backward_end_s);
    optimizer_s_.push_back(end_s - backward_end_s);
    for (TimedLayer& layer : layers_) layer.backward_s.push_back(by_layer[layer.name]);
  }

  [[nodiscard]] Json json(const Options& options, int ranks) const {
    Json layers = Json::array();
    for (const TimedLayer& layer : layers_) {
      Json entry{{"name", layer.name}, {"elements", layer.elements}};
      if (layer.rows > 0) entry["rows"] = layer.rows;
      entry["backward_s"] = summary_of(layer.backward_s)["median"];
      layers.push_back(std::move(entry));
    }
    return {{"model", fmt::format("{}, batch {}", options.model, options.batch)},
            {"source", options.command},
            {"ranks", ranks},
            {"threads", options.threads},
            {"batch", options.batch},
            {"steps", forward_s_.size()},
            {"both_passes_s", summary_of(step_s_)},
            {"optimizer_s", summary_of(optimizer_s_)["median"]},
            {"forward_s", summary_of(forward_s_)["median"]},
            {"layers", layers}};
  }

 private:
  const Model& model_;
  Network network_;
  at::Tensor parameters_, input_, target_;
  Trace trace_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<TimedLayer> layers_;
  std::vector<double> forward_s_, step_s_, optimizer_s_;
};

void write(const std::string& file, const Json& profile) {
  std::ofstream stream(file, std::ios::trunc);
  stream << text_of_json(profile, 1) << '\n';
  if (!stream.flush()) throw SystemFailure(fmt::format("cannot write --profile {}: {}", file, std::strerror(errno)));
}

void print(const Options& options, Json profile) {
  profile.erase("layers");
  profile["profile"] = options.profile;
  if (options.json) {
    write_output(text_of_json(profile) + "\n");
    return;
  }
  write_output(
      fmt::format("{}: forward {}, both passes {} (median of {} steps, {} rank{} at once, {} thread{} each): {}\n",
                  profile["model"].get<std::string>(), format_seconds(profile["forward_s"].get<double>()),
                  format_seconds(profile["both_passes_s"]["median"].get<double>()), profile["steps"].get<std::size_t>(),
                  profile["ranks"].get<int>(), profile["ranks"] == 1 ? "" : "s", options.threads,
                  options.threads == 1 ? "" : "s", options.profile));
}

}  // namespace

void write_profile(Group& group, const Options& options) {
  at::set_num_threads(options.threads);
  at::set_num_interop_threads(1);
  Profiler profiler(group, options);
  barrier(group);
  for (std::uint64_t step = 0; step < kWarmUp + options.steps.value_or(20); ++step) profiler.step(step >= kWarmUp);
  barrier(group);  // no rank runs its last steps alone on the machine
  if (group.rank() != 0) return;
  const Json profile = profiler.json(options, group.size());
  write(options.profile, profile);
  print(options, profile);
}

}  // namespace syncopate::train
