// Replays the steps of a model layer by layer, with its tables on real servers.
#include "server/replay.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "syncopate/error.hpp"
#include "syncopate/group.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/server.hpp"

namespace syncopate::bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kRate = 1e-3;

/// Emulates an accelerator whose time does not depend on this core: a sleep that lasts too long shortens the next
/// ones. The accelerator is idle only while it waits for weights.
class Accelerator final {
 public:
  void stand_until_now() { free_ = std::max(free_, SteadyClock::now()); }
  void compute(double seconds) {
    free_ += std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
    if (free_ - SteadyClock::now() > kShortest) std::this_thread::sleep_until(free_);
  }
  void finish() const { std::this_thread::sleep_until(free_); }

 private:
  static constexpr std::chrono::microseconds kShortest{300};  // shorter sleeps cost more than they are worth
  SteadyClock::time_point free_ = SteadyClock::now();
};

Profile profile_of(const Replayed& replayed) {
  const std::vector<LayerWork> layers = layers_of_architecture(replayed.architecture);
  double flops = 0;
  for (const LayerWork& layer : layers) flops += layer.flops;
  return derive_profile(replayed.architecture, layers, 3 * flops / replayed.step_s, 1);
}

/// The weights and gradients of a model, one vector per layer; each layer is a table unless the flow is "alone".
class Model final {
 public:
  explicit Model(const Replayed& replayed) : replayed_(replayed), profile_(profile_of(replayed)) {
    std::size_t longest = 0;
    for (const ProfileLayer& layer : profile_.layers) {
      weights_.emplace_back(layer.bytes / sizeof(float), 0.5F);
      gradients_.emplace_back(weights_.back().size());
      longest = std::max(longest, weights_.back().size());
      backward_s_ += layer.backward_s;
    }
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1e-3F);
    drawn_.resize(longest + kShift);
    for (float& value : drawn_) value = normal(random);
    if (replayed.flow != "alone") connect();
  }

  void step() {
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      if (worker_) read(layer);
      accelerator_.compute(profile_.forward_s * profile_.layers[layer].backward_s / backward_s_);
    }
    for (std::size_t layer = weights_.size(); layer-- > 0;) {
      accelerator_.compute(profile_.layers[layer].backward_s);
      if (worker_) update(layer);
    }
    accelerator_.finish();
    if (worker_) worker_->clock(kRate);
    ++steps_;
  }

  void finish() {
    if (worker_) worker_->finish();
  }
  [[nodiscard]] WorkerStatistics statistics() const { return worker_ ? worker_->statistics() : WorkerStatistics{}; }

  /// FNV-1a of all weights, on 32-bit words; a double holds it exactly.
  [[nodiscard]] double digest() const {
    std::uint32_t hash = 2'166'136'261;
    for (const std::vector<float>& layer : weights_)
      for (const float weight : layer) hash = (hash ^ std::bit_cast<std::uint32_t>(weight)) * 16'777'619;
    return hash;
  }
  [[nodiscard]] bool has_learnt() const { return weights_.front().front() != 0.5F; }

 private:
  void connect() {
    WorkerOptions options = worker_from_environment();
    options.consistency = replayed_.consistency;
    options.coding.codec = replayed_.codec;
    options.answers = replayed_.answers;
    options.flow = replayed_.flow;
    options.placement = replayed_.placement;
    options.optimizer = "sgd";
    options.hyperparameters = {{"weight_decay", 0}};
    worker_ = TableWorker::connect(options);
    for (std::size_t layer = 0; layer < weights_.size(); ++layer)
      tables_.push_back(worker_->create_table(profile_.layers[layer].name, Buffer(std::span(weights_[layer]))));
    worker_->start();
  }

  void read(std::size_t layer) {
    const bool waits = !worker_->is_ready(tables_[layer]);
    worker_->sync(tables_[layer]);
    if (waits) accelerator_.stand_until_now();
  }

  /// Gradients differ from step to step, so that a codec selects different elements.
  void update(std::size_t layer) {
    std::vector<float>& gradient = gradients_[layer];
    std::copy_n(drawn_.begin() + (steps_ * 31 + static_cast<int>(layer)) % kShift, gradient.size(), gradient.begin());
    worker_->update(tables_[layer], Buffer(std::span(gradient)), kRate);
  }

  static constexpr int kShift = 4099;

  const Replayed& replayed_;
  const Profile profile_;
  double backward_s_ = 0;
  std::vector<std::vector<float>> weights_, gradients_;  ///< by layer
  std::vector<float> drawn_;
  std::vector<std::size_t> tables_;  ///< by layer
  std::unique_ptr<TableWorker> worker_;
  Accelerator accelerator_;
  int steps_ = 0;
};

void combine(Group& group, std::vector<double>& values, ReduceOp op) {
  allreduce(group, std::span<double>(values), {.op = op, .root = 0, .algorithm = "auto", .name = {}});
}

}  // namespace

std::string replay(const Replayed& replayed) {
  const auto group = Group::join();
  Model model(replayed);
  for (int step = 0; step < replayed.untimed; ++step) model.step();
  barrier(*group);
  const WorkerStatistics before = model.statistics();
  std::vector<double> seconds;
  SteadyClock::time_point begin = SteadyClock::now();
  for (int block = 0; block < replayed.blocks; ++block) {
    for (int step = 0; step < kBlockSteps; ++step) model.step();
    const SteadyClock::time_point end = SteadyClock::now();
    seconds.push_back(std::chrono::duration<double>(end - begin).count() / kBlockSteps);
    begin = end;
  }
  const WorkerStatistics after = model.statistics();
  model.finish();
  const double steps = replayed.blocks * kBlockSteps * group->size();
  std::vector<double> bytes{static_cast<double>(after.pushed_bytes - before.pushed_bytes) / steps,
                            static_cast<double>(after.pulled_bytes - before.pulled_bytes) / steps};
  std::vector<double> most{model.digest(), -model.digest(), static_cast<double>(after.stalest)};
  combine(*group, seconds, ReduceOp::max);
  combine(*group, bytes, ReduceOp::sum);
  combine(*group, most, ReduceOp::max);
  if (group->rank() != 0) return {};
  const bool is_right = most[0] == -most[1] && (replayed.flow == "alone" || model.has_learnt());
  return nlohmann::json{{"contender", replayed.contender},
                        {"model", replayed.architecture},
                        {"block_seconds", seconds},
                        {"pushed_bytes", bytes[0]},
                        {"pulled_bytes", bytes[1]},
                        {"stalest", most[2]},
                        {"correct", is_right}}
      .dump();
}

}  // namespace syncopate::bench
