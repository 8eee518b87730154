// The checkpoints of a run: the one that it resumes from, and those that it writes, with the state of the codecs.
#pragma once

#include <optional>

#include "record/checkpoint.hpp"
#include "record/codec_state.hpp"
#include "run.hpp"
#include "syncopate/error.hpp"
#include "training_state.hpp"
#include "update/descent.hpp"

namespace syncopate::train {

class Checkpoints final {
 public:
  /// Loads the checkpoint of --resume on rank 0 and on every worker. Throws the errors of load_checkpoint; Misuse if
  /// --seed is another seed; SystemFailure if --checkpoint cannot be written. `run` outlives this.
  explicit Checkpoints(Run& run);

  /// The loaded checkpoint, until `take_kept`.
  [[nodiscard]] const std::optional<Checkpoint>& loaded() const { return loaded_; }
  /// The optimizer's state of the loaded checkpoint, which is then freed; empty on ranks that loaded none.
  [[nodiscard]] Kept take_kept();
  /// Restores the codecs' state that was saved with the loaded checkpoint. A collective.
  void restore_codec_state(const TrainingState& state, Gradients& gradients);

  /// Writes --checkpoint on rank 0, and each rank's codec state next to it. A collective; no exchange may be under way.
  /// If a rank cannot write, training goes on.
  void save(const TrainingState& state, Descent& descent);
  /// Rank 0: the error of the last attempt to write the checkpoint.
  [[nodiscard]] const std::optional<SystemFailure>& unsaved() const { return unsaved_; }

 private:
  [[nodiscard]] StateOf place_of_state(const std::string& checkpoint, const TrainingState& state) const;
  void restore_worker_state(const TrainingState& state, const SavedCodecState& fresh, Gradients& gradients);
  void save_codecs(const TrainingState& state, const Gradients& gradients);

  Run& run_;
  std::optional<Checkpoint> loaded_;
  std::optional<SystemFailure> unsaved_;
};

}  // namespace syncopate::train
