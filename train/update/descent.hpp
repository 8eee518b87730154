// The descent of one part of a training: gradients are exchanged, and an optimizer changes the weights with them.
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
  /// `earlier`: how far the run is, and what an optimizer kept, on all ranks or none; rank 0's counts. A collective.
  /// `run`, `options` and `plan` outlive it. Throws Misuse where another optimizer kept it.
  Descent(const RunContext& run, const Options& options, const ExchangePlan& plan, const Earlier& earlier);
  ~Descent();
  Descent(const Descent&) = delete;
  Descent& operator=(const Descent&) = delete;

  [[nodiscard]] Gradients& gradients() noexcept { return *gradients_; }
  [[nodiscard]] const Gradients& gradients() const noexcept { return *gradients_; }
  [[nodiscard]] Updater updater() const noexcept { return updater_; }
  [[nodiscard]] const ExchangePlan& plan() const noexcept { return plan_; }
  /// A step's exchange goes on into the next step's forward pass.
  [[nodiscard]] bool reaches_into_next_step() const noexcept { return updater_ != Updater::caller && !serial_; }
  [[nodiscard]] std::string_view rule() const noexcept { return optimizer_->rule(); }

  /// Between steps: how the updates of the next one are made, also while they reach into the step after it.
  void begin_step(const UpdateStep& at);
  /// Updates the weights of gradients [first, last].
  void update(std::size_t first, std::size_t last);
  /// What the optimizer keeps of all weights, maybe in its own memory; nothing on ranks that never update. A collective
  /// where shards are gathered; nothing is under way. `parameters`: gets the weights of servers, where they hold them,
  /// on rank 0; the other workers wait until theirs are in them.
  [[nodiscard]] Kept kept(at::Tensor& parameters);

 private:
  void take(const Kept& earlier);

  const RunContext& run_;
  const ExchangePlan& plan_;
  const Updater updater_;
  const bool serial_;
  UpdateStep step_;
  std::optional<Shards> shards_;  ///< of the optimizer's work and state, where ranks divide them
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Gradients> gradients_;
};

}  // namespace syncopate::train
