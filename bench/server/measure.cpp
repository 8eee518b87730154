// Measures a server: synchronous rounds of updates whose resulting weights are known.
#include "server/measure.hpp"

#include <memory>
#include <span>
#include <vector>

#include "contender/push_pull.hpp"
#include "syncopate/error.hpp"
#include "syncopate/server.hpp"

namespace syncopate::bench {

namespace {

/// All tables lie contiguously in one vector.
class Rounds final {
 public:
  Rounds(const Measured& measured, const WorkerOptions& options)
      : options_(options),
        updates_(static_cast<int>(options.workers)),
        weights_(measured.bytes / sizeof(float)),
        gradients_(weights_.size()),
        worker_(TableWorker::connect(options)) {
    for (int table = 0; table < measured.tables; ++table) {
      const auto part = contender::even_part(weights_.size(), static_cast<std::size_t>(measured.tables),
                                             static_cast<std::size_t>(table));
      parts_.push_back(std::span(gradients_).subspan(part.begin, part.end - part.begin));
      worker_->create_table("table " + std::to_string(table),
                            std::span(weights_).subspan(part.begin, parts_[table].size()));
    }
    worker_->start();
  }

  void prepare(int round) { updates_.write(gradients_, static_cast<int>(options_.worker), round); }

  /// As in training: the backward pass ends with the front table, and the next forward pass needs it first.
  void run() {
    for (std::size_t table = parts_.size(); table-- > 0;) worker_->update(table, parts_[table], 1);
    worker_->clock(1);
    for (std::size_t table = 0; table < parts_.size(); ++table) worker_->sync(table);
  }
  [[nodiscard]] bool is_right(int round) {
    updates_.descend(round);
    return updates_.are_weights(weights_);
  }
  /// Processor seconds of all servers; worker 0 asks for them, other workers return 0.
  [[nodiscard]] double of_servers() const {
    double seconds = 0;
    if (options_.worker != 0) return seconds;
    for (const std::string& server : options_.servers) seconds += status_of(server, options_.access).processor_seconds;
    return seconds;
  }
  void finish() { worker_->finish(); }

 private:
  const WorkerOptions options_;
  contender::Updates updates_;
  std::vector<float> weights_, gradients_;
  std::unique_ptr<TableWorker> worker_;
  std::vector<std::span<float>> parts_;  ///< slices of `gradients_`, by table
};

}  // namespace

std::string measure(const Measured& measured) {
  WorkerOptions options = worker_from_environment();
  options.optimizer = "sgd";
  options.hyperparameters = {{"weight_decay", 0}};
  const auto group = Group::join();
  Rounds rounds(measured, options);
  const std::string row = contender::measure(*group, {.contender = measured.contender,
                                                      .bytes = measured.bytes,
                                                      .untimed = measured.untimed,
                                                      .timed = measured.timed,
                                                      .prepare = [&](int round) { rounds.prepare(round); },
                                                      .run = [&] { rounds.run(); },
                                                      .is_right = [&](int round) { return rounds.is_right(round); },
                                                      .of_servers = [&] { return rounds.of_servers(); }});
  rounds.finish();
  return options.worker == 0 ? row : std::string();
}

}  // namespace syncopate::bench
