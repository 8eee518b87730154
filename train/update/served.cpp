// Served weights by syncopate::TableWorker: one table for each parameter.
#include "update/served.hpp"

#include "syncopate/optimizer.hpp"
#include "syncopate/server.hpp"
#include "update/optimizer.hpp"

namespace syncopate::train {
namespace {

class ByTables final : public ServedWeights {
 public:
  ByTables(const Network& network, const WorkerOptions& options) : worker_(TableWorker::connect(options)) {
    const bool spares = is_layer_wise(options.optimizer);
    for (const auto& [name, value] : network.parameters)
      worker_->create_table(name, view_of(value), spares && value.dim() <= 1);
    worker_->start();
  }

  void update(std::size_t parameter, std::span<float> gradient, double rate) override {
    worker_->update(parameter, gradient, rate);
  }
  void end_step(double rate) override { worker_->clock(rate); }
  void wait(std::size_t parameter) override { worker_->sync(parameter); }
  void finish() override { worker_->finish(); }
  [[nodiscard]] Served served() const override {
    const WorkerStatistics statistics = worker_->statistics();
    return {statistics.pushed_bytes, statistics.pulled_bytes, statistics.stalest, statistics.mean_staleness};
  }

 private:
  std::unique_ptr<TableWorker> worker_;
};

}  // namespace

Place place_among_workers() {
  const WorkerOptions worker = worker_from_environment();
  return {static_cast<int>(worker.worker), static_cast<int>(worker.workers)};
}

std::unique_ptr<ServedWeights> serve(const Network& network, const Options& options) {
  WorkerOptions worker = worker_from_environment();
  const OptimizerOptions optimizer = optimizer_options(options);
  worker.placement = options.placement;
  worker.consistency = options.consistency;
  worker.codec = options.codec;
  worker.feedback = options.feedback.kind;
  worker.answers = options.answers;
  worker.dense_below = options.dense_below;
  worker.seed = options.seed.value_or(1);
  worker.optimizer = optimizer.rule;
  worker.hyperparameters = optimizer.hyperparameters;
  if (!options.log_level.empty()) worker.log.level = log_level_named(options.log_level);
  return std::make_unique<ByTables>(network, worker);
}

}  // namespace syncopate::train
