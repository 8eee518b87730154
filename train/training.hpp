// Training: one rank's data, network, gradients and optimizer, and the loop that turns them.
#pragma once

#include <memory>

#include "data/data.hpp"
#include "network/network.hpp"
#include "options.hpp"
#include "ranks/interrupt.hpp"
#include "ranks/notices.hpp"
#include "record/checkpoint.hpp"
#include "record/codec_state.hpp"
#include "record/output.hpp"
#include "syncopate/group.hpp"
#include "syncopate/input.hpp"
#include "syncopate/trace.hpp"
#include "update/codec_choice.hpp"
#include "update/gradients.hpp"
#include "update/optimizer.hpp"
#include "update/rate.hpp"
#include "update/served.hpp"
#include "update/shards.hpp"

namespace syncopate::train {

class Training final {
 public:
  /// Reads the data, builds the network, and makes every rank's state rank 0's. Throws the errors of all of these.
  /// `place`: this rank's in the group, or, where weights are served, this worker's; its group then has no other rank.
  Training(Group& group, const Place& place, const Options& options);
  /// Trains until --steps or --epochs is reached, or a signal comes to any rank; writes checkpoints, evaluates,
  /// reports. Returns the signal; 0: none. Throws Mismatch where ranks end with different parameters.
  [[nodiscard]] int run();

 private:
  struct Losses {
    double sum = 0;
    std::size_t samples = 0;
  };

  void share_initial_state();
  void share_optimizer_state();
  void weigh(SynchronizerOptions& exchange);
  void choose_codecs(SynchronizerOptions& exchange);
  [[nodiscard]] StateOf place_of_state(const std::string& checkpoint) const;
  void restore_codec_state();
  void save_codec_state();
  void begin_run();
  [[nodiscard]] Json description() const;
  StepRow step();
  /// Some of this rank's share of a step.
  struct MicroBatch {
    const Batch& samples;  ///< without tensors where the rank has none
    std::size_t count;
    const input::Share& share;
    bool first, last;
  };
  void micro_batch(const MicroBatch& batch, StepRow& row, Losses& losses);
  void enter_backward(const MicroBatch& batch, StepRow& row);
  void finish(StepRow& row);
  void update(std::size_t first, std::size_t last);
  void settle();
  Batch read_batch(StepTimes& times);
  void begin_trace();
  void end_trace();
  void after_step();
  void average_statistics();
  Evaluation evaluate();
  void report_evaluation();
  void note_tiers(std::uint64_t epoch);
  void save();
  void finish_run(EndRow& end);
  void exchange_notices();
  void say_notices();
  void found_not_finite(const std::string& what, const std::string& gradient);
  [[nodiscard]] bool done() const;
  [[nodiscard]] std::uint64_t last_step() const;
  [[nodiscard]] std::size_t samples_per_step() const;
  [[nodiscard]] bool alone() const { return options_.exchange == "none"; }
  [[nodiscard]] bool is_served() const { return updater_ == Updater::servers; }
  void sleep_as_slow(StepTimes& times);
  /// A step's exchange goes on into the next step's forward pass.
  [[nodiscard]] bool reaches_into_next_step() const { return updater_ != Updater::caller && !options_.serial; }

  Group& group_;
  const Place place_;
  const Options& options_;
  const Model& model_;
  const Updater updater_;
  const RateSchedule schedule_;
  UpdateStep update_step_;  ///< of the present step, also while its updates reach into the next
  Output output_;
  std::unique_ptr<Data> data_;
  std::unique_ptr<Batches> batches_;  ///< of the steps, from the first one on
  Checkpoint resumed_;                ///< rank 0 with --resume only
  RunState state_;                    ///< `state_.progress` is where the training stands
  Network network_;
  at::Tensor parameters_, buffers_;  ///< all of the network's, in one memory each
  Trace trace_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Shards> shards_;  ///< of the optimizer's work and state, where ranks divide them
  std::unique_ptr<input::Order> order_;
  std::optional<Evaluation> evaluation_;  ///< of the present parameters
  std::uint64_t traced_ = 0;              ///< the step whose timeline is kept, counted from 1
  std::optional<Interrupt> interrupt_;    ///< from the first step on
  Notices notices_;
  double last_step_s_ = 0;
  std::string refused_codec_;             ///< it was asked for, and is predicted to lose; else empty
  ChosenCodecs codecs_;                   ///< with --codec auto:...
  std::optional<SystemFailure> unsaved_;  ///< rank 0, of the last attempt to write a checkpoint
};

}  // namespace syncopate::train
