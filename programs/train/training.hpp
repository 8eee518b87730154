// Training: the loop over the steps of a run, the work between steps, and the change from a part to the next.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checkpoints.hpp"
#include "part_training.hpp"
#include "run.hpp"
#include "training_state.hpp"
#include "update/exchange_plan.hpp"

namespace syncopate::train {

class Training final {
 public:
  /// Reads the data, builds the network, and copies rank 0's state to every rank. Throws the errors of all of these.
  /// `place`: this rank in the group; with a parameter server this worker, whose group has no other rank.
  Training(Group& group, const Place& place, const Options& options);
  /// Trains until --steps or --epochs is reached, or any rank receives a signal; writes checkpoints, evaluates,
  /// reports. Returns the signal; 0: none. Throws Mismatch if ranks end with different parameters.
  [[nodiscard]] int run();

 private:
  void warn_about_data();  ///< rank 0: the step of a resumed run, steps longer than the data, classes that differ
  void begin_part(std::optional<Kept> earlier, std::unique_ptr<ServedWeights> served = nullptr);
  void enter_next_part();
  void go_on_with_servers();
  void begin_run();
  [[nodiscard]] input::Pipeline::Plan plan_of_steps(std::uint64_t last) const;
  void after_step();
  void note_tiers(std::uint64_t epoch);
  void report_evaluation();
  void save();
  void finish_run(EndRow& end);
  [[nodiscard]] bool done() const { return run_.done(state_.progress); }
  [[nodiscard]] std::uint64_t last_step() const { return run_.last_step(state_.progress); }

  Run run_;
  Checkpoints checkpoints_;
  TrainingState state_;
  std::vector<ExchangePlan> plans_;       ///< of each part
  std::unique_ptr<Batches> batches_;      ///< one per step, from the first step on
  std::optional<PartTraining> part_;      ///< set, except between parts
  std::optional<Evaluation> evaluation_;  ///< of the current parameters
};

}  // namespace syncopate::train
