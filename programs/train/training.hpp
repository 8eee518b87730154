// Training: the data, network and descent of one rank, and the training loop over the parts of a recipe.
#pragma once

#include <memory>

#include "data/data.hpp"
#include "network/network.hpp"
#include "options.hpp"
#include "ranks/interrupt.hpp"
#include "ranks/notices.hpp"
#include "recipe/part.hpp"
#include "record/checkpoint.hpp"
#include "record/codec_state.hpp"
#include "record/output.hpp"
#include "syncopate/group.hpp"
#include "syncopate/input.hpp"
#include "syncopate/trace.hpp"
#include "update/descent.hpp"
#include "update/exchange_plan.hpp"
#include "update/rate.hpp"
#include "update/served.hpp"

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
  struct Losses {
    double sum = 0;
    std::size_t samples = 0;
  };

  void require_possible_sides() const;
  void share_initial_state();
  void warn_about_data();  ///< rank 0: the step of a resumed run, steps longer than the data, classes that differ
  void plan_exchanges();
  void begin_descent(std::optional<Kept> earlier);
  void go_on_with_servers();
  void enter_next_part();
  [[nodiscard]] StateOf place_of_state(const std::string& checkpoint) const;
  void find_codec_state();
  void carry_codec_state(const SavedCodecState& earlier);
  void begin_codecs(SavedCodecState fresh);
  void save_codec_state();
  void share_weights();
  void begin_run();
  [[nodiscard]] Json description() const;
  StepRow step();
  /// A part of this rank's samples of a step.
  struct MicroBatch {
    const Batch& samples;  ///< without tensors if the rank has none
    std::size_t count;
    const input::SampleShare& share;
    bool first, last;
  };
  void micro_batch(const MicroBatch& batch, StepRow& row, Losses& losses);
  void enter_backward(const MicroBatch& batch, StepRow& row);
  void finish(StepRow& row);
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
  [[nodiscard]] input::Pipeline::Plan plan_of_steps(std::uint64_t last) const;
  [[nodiscard]] std::size_t samples_per_step() const { return train::samples_per_step(*part_, place_.ranks); }
  [[nodiscard]] double learning_rate() const;
  [[nodiscard]] double epochs_trained() const;                              ///< with a fraction
  [[nodiscard]] bool alone() const { return options_.exchange == "none"; }  ///< equal in all parts
  [[nodiscard]] bool is_served() const { return options_.is_served(); }
  void sleep_as_slow(StepTimes& times);

  Group& group_;
  const Place place_;
  const Options& options_;  ///< the run's; those of a part are in `part_`
  const Model& model_;
  const RateSchedule schedule_;
  const std::vector<Part> parts_;
  Output output_;
  std::unique_ptr<Data> data_;
  std::unique_ptr<Batches> batches_;  ///< one per step, from the first step on
  Checkpoint resumed_;                ///< rank 0 with --resume only, and every worker
  bool goes_on_ = false;              ///< there is a checkpoint
  RunState state_;                    ///< `state_.progress` is the position of the training
  Network network_;
  at::Tensor parameters_, buffers_;  ///< all of the network's, each in one contiguous memory
  Trace trace_;
  const RunContext context_;
  std::vector<ExchangePlan> plans_;   ///< of each part
  const Part* part_;                  ///< the part of `descent_`
  std::unique_ptr<Descent> descent_;  ///< not null, except between parts
  std::unique_ptr<input::Order> order_;
  std::optional<Evaluation> evaluation_;  ///< of the current parameters
  std::uint64_t traced_ = 0;              ///< the step whose timeline is recorded, counted from 1
  std::optional<Interrupt> interrupt_;    ///< from the first step on
  Notices notices_;
  double last_step_s_ = 0;
  std::optional<SystemFailure> unsaved_;  ///< rank 0: error of the last attempt to write a checkpoint
};

}  // namespace syncopate::train
