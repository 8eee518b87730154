// Served weights on top of syncopate::TableWorker: one table for each parameter.
#include "update/served.hpp"

#include <algorithm>

#include "syncopate/optimizer.hpp"
#include "syncopate/server.hpp"
#include "update/optimizer.hpp"

namespace syncopate::train {
namespace {

/// The weights come from the network, which holds those of the checkpoint.
KeptTables tables_of(const Earlier& earlier) {
  KeptTables tables{.step = static_cast<std::int64_t>(earlier.step)};
  if (!earlier.kept) return tables;
  tables.optimizer = earlier.kept->optimizer;
  for (const auto& [name, values] : earlier.kept->state) {
    const float* begin = values.const_data_ptr<float>();
    tables.state.emplace_back(name, std::vector<float>(begin, begin + values.numel()));
  }
  return tables;
}

class ByTables final : public ServedWeights {
 public:
  ByTables(const Network& network, const WorkerOptions& options, const Earlier& earlier)
      : options_(options), worker_(TableWorker::connect(options)) {
    const bool spares = is_layer_wise(options.optimizer);
    for (const auto& [name, value] : network.parameters) {
      worker_->create_table(name, view_of(value), spares && value.dim() <= 1,
                            value.dim() > 1 ? static_cast<std::size_t>(value.size(0)) : 0);
      names_.push_back(name);
    }
    worker_->start(tables_of(earlier));
  }

  void update(std::size_t parameter, std::span<float> gradient, double rate) override {
    worker_->update(parameter, gradient, rate);
  }
  void end_step(double rate) override { worker_->clock(rate); }
  void wait(std::size_t parameter) override { worker_->sync(parameter); }
  void flush() override { worker_->flush(); }
  [[nodiscard]] Kept gather(const at::Tensor& parameters) override {
    const KeptTables tables = worker_->gather();
    std::ranges::copy(tables.weights, parameters.data_ptr<float>());
    Kept kept{tables.optimizer, {}};
    for (const auto& [name, values] : tables.state) {
      kept.state.emplace_back(name, at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat));
      std::ranges::copy(values, kept.state.back().second.data_ptr<float>());
    }
    return kept;
  }
  [[nodiscard]] SavedCodecState codec_state() const override {
    KeptByCodec kept = worker_->kept_by_codec();
    SavedCodecState state{.codec = options_.coding.codec, .steps = kept.packets};
    for (std::size_t i = 0; i < names_.size(); ++i) state.gradients.emplace_back(names_[i], std::move(kept.tables[i]));
    return state;
  }
  void restore(const SavedCodecState& state) override {
    KeptByCodec kept{.packets = state.steps};
    for (const auto& [name, bytes] : state.gradients) kept.tables.push_back(bytes);
    worker_->restore(kept);
  }
  [[nodiscard]] std::uint64_t steps() const override { return static_cast<std::uint64_t>(worker_->steps()); }
  void finish() override {
    if (options_.worker == 0) ask_servers();
    worker_->finish();
  }
  [[nodiscard]] Served served() const override {
    const WorkerStatistics statistics = worker_->statistics();
    return {.pushed_bytes = statistics.pushed_bytes,
            .pulled_bytes = statistics.pulled_bytes,
            .stalest = statistics.stalest,
            .mean_staleness = statistics.mean_staleness,
            .reconnections = statistics.reconnections,
            .servers = servers_};
  }

 private:
  /// Called before this worker leaves, because servers end with their last worker.
  void ask_servers() {
    for (const std::string& address : options_.servers) try {
        const ServerStatus status = status_of(address, options_.access);
        servers_.push_back({address, status.kept_bytes, status.received_bytes, status.sent_bytes});
      } catch (const Error&) {  // a server that cannot be reached has no row in the run's record
      }
  }

  const WorkerOptions options_;
  std::vector<std::string> names_;
  std::vector<ServerRecord> servers_;
  std::unique_ptr<TableWorker> worker_;
};

}  // namespace

Place place_among_workers() {
  const WorkerOptions worker = worker_from_environment();
  return {static_cast<int>(worker.worker), static_cast<int>(worker.workers)};
}

std::unique_ptr<ServedWeights> serve(const Network& network, const Options& options, const CodingOptions& coding,
                                     const Earlier& earlier) {
  WorkerOptions worker = worker_from_environment();
  const OptimizerOptions optimizer = optimizer_options(options);
  worker.placement = options.worker.placement;
  worker.consistency = options.worker.consistency;
  worker.coding = coding;
  worker.answers = options.worker.answers;
  worker.flow = options.worker.flow;
  worker.coding.seed = earlier.seed;
  worker.optimizer = optimizer.rule;
  worker.hyperparameters = optimizer.hyperparameters;
  if (!options.log_level.empty()) worker.log.level = log_level_named(options.log_level);
  return std::make_unique<ByTables>(network, worker, earlier);
}

}  // namespace syncopate::train
