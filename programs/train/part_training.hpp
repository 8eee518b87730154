// The training of one part of a recipe: its steps, from its first position to the state that the next part takes over.
#pragma once

#include <optional>
#include <string>

#include "data/data.hpp"
#include "run.hpp"
#include "training_state.hpp"
#include "update/descent.hpp"

namespace syncopate::train {

/// The state that a part leaves to the next one.
struct PartState {
  Kept kept{};  ///< rank 0's is used
  SavedCodecState codecs{};
  std::unique_ptr<ServedWeights> served{};  ///< with servers, which keep the state above; else null
};

class PartTraining final {
 public:
  /// `earlier`: the optimizer's state, on all ranks or none. `served`: of the previous part; null: none. A collective.
  /// All other arguments outlive this. Throws Misuse if the state is of another optimizer.
  PartTraining(Run& run, TrainingState& state, const Part& part, const ExchangePlan& plan, std::optional<Kept> earlier,
               std::unique_ptr<ServedWeights> served);
  PartTraining(const PartTraining&) = delete;
  PartTraining& operator=(const PartTraining&) = delete;

  [[nodiscard]] const Part& part() const noexcept { return part_; }
  [[nodiscard]] Descent& descent() noexcept { return descent_; }
  [[nodiscard]] Gradients& gradients() noexcept { return descent_.gradients(); }

  /// One step: forward, backward, exchange, update. Records its timeline if it is the traced one.
  StepRow step(Batches& batches);
  /// Ends the exchange under way. If an exchange extends into the next step, so does the traced step, and ends here.
  void finish_exchange();
  /// Rank 0's weights become those of every rank. A collective; no exchange may be under way.
  void share_weights();
  /// Ends the part: the next one continues as if a checkpoint were written and resumed from, with bit-identical
  /// results.
  [[nodiscard]] PartState leave();
  /// Takes over the codecs' state of the previous part if it fits, else logs why not.
  void carry_codec_state(const SavedCodecState& earlier);
  /// The content of run.json.
  [[nodiscard]] Json record() const;

 private:
  struct Losses {
    double sum = 0;
    std::size_t samples = 0;
  };
  /// A part of this rank's samples of a step.
  struct MicroBatch {
    const Batch& samples;  ///< without tensors if the rank has none
    std::size_t count;
    const input::SampleShare& share;
    bool first, last;
  };

  Batch read_batch(Batches& batches, StepTimes& times);
  void micro_batch(const MicroBatch& batch, StepRow& row, Losses& losses);
  void sleep_as_slow(StepTimes& times);
  void enter_backward(const MicroBatch& batch, StepRow& row);
  void finish(StepRow& row);
  void begin_trace();
  void end_trace();
  [[nodiscard]] double learning_rate() const;

  Run& run_;
  TrainingState& state_;
  const Part& part_;
  Descent descent_;
};

}  // namespace syncopate::train
