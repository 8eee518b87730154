// The descent of one part of a training: gradients are exchanged, and an optimizer updates the weights.
#pragma once

#include <memory>
#include <optional>

#include "record/checkpoint.hpp"
#include "syncopate/optimizer.hpp"
#include "update/exchange_plan.hpp"
#include "update/gradients.hpp"

namespace syncopate::train {

class Descent final {
 public:
  /// `earlier`: the position of the run and the optimizer's earlier state, on all ranks or none; rank 0's is used. A
  /// collective. All other arguments outlive it. `served`: the earlier part's connection to servers; null: connects, if
  /// the exchange is by servers. Throws Misuse if the state is of another optimizer.
  Descent(const Run& run, const Network& network, const Options& options, const ExchangePlan& plan,
          const Earlier& earlier, std::unique_ptr<ServedWeights> served);
  ~Descent();
  Descent(const Descent&) = delete;
  Descent& operator=(const Descent&) = delete;

  [[nodiscard]] Gradients& gradients() noexcept { return *gradients_; }
  [[nodiscard]] const Gradients& gradients() const noexcept { return *gradients_; }
  /// None: servers update.
  [[nodiscard]] std::optional<Updater> updater() const noexcept { return updater_; }
  [[nodiscard]] const ExchangePlan& plan() const noexcept { return plan_; }
  /// Whether a step's exchange continues during the next step's forward pass.
  [[nodiscard]] bool reaches_into_next_step() const noexcept { return updater_ != Updater::caller && !serial_; }
  [[nodiscard]] std::string_view rule() const noexcept { return optimizer_->rule(); }

  /// Called between steps; `at` describes the updates of the next step, including those that overlap the step after
  /// it.
  void begin_step(const UpdateStep& at);
  /// Updates the weights of gradients [first, last].
  void update(std::size_t first, std::size_t last);
  /// The optimizer's state for all weights, possibly as views; empty on ranks that never update. A collective if
  /// shards are gathered; no exchange may be under way. With servers, rank 0 writes their weights into `parameters`;
  /// the other workers wait until the servers have all their updates.
  [[nodiscard]] Kept kept(at::Tensor& parameters);

 private:
  void take(const Kept& earlier);

  const Run& run_;
  const ExchangePlan& plan_;
  const std::optional<Updater> updater_;  ///< none: servers
  const bool serial_;
  UpdateStep step_;
  std::optional<Shards> shards_;  ///< of the optimizer's work and state, if ranks divide them
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Gradients> gradients_;
};

}  // namespace syncopate::train
