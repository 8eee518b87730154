// A run resumes from a checkpoint and writes its own; a codec's state belongs to the checkpoint of the same step.
#include "checkpoints.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/tooling/sealed_file.hpp"

namespace syncopate::train {

Checkpoints::Checkpoints(Run& run) : run_(run) {
  const Options& o = run.options;
  if (!o.checkpoint.empty() && run.place.rank == 0) require_writable(o.checkpoint);
  const bool loads = run.place.rank == 0 || run.is_served();  // workers are not a group and cannot share the state
  if (o.resume.empty() || !loads) return;
  loaded_ = load_checkpoint(o.resume);
  require(!o.seed || *o.seed == loaded_->state.seed, "--seed {} differs from the checkpoint's, {}", o.seed.value_or(0),
          loaded_->state.seed);
}

Kept Checkpoints::take_kept() {
  Kept kept = loaded_ ? std::move(loaded_->kept) : Kept{};
  loaded_.reset();
  return kept;
}

/// If workers hold different copies of the weights, only the step identifies the codecs' state.
StateOf Checkpoints::place_of_state(const std::string& checkpoint, const TrainingState& state) const {
  const auto bytes = static_cast<std::size_t>(4 * state.parameters.numel());
  const Options& o = run_.options;
  const bool same_everywhere = !run_.is_served() || (o.worker.consistency == "bsp" && o.worker.answers == "none");
  return {.file = checkpoint,
          .step = state.progress.step,
          .parameters = same_everywhere ? XXH3_64bits(state.parameters.const_data_ptr<float>(), bytes) : 0,
          .rank = run_.place.rank,
          .ranks = run_.place.ranks};
}

/// Either all ranks restore the state of their codecs, or none does: with residuals of some ranks only, the loss could
/// not be accounted for.
void Checkpoints::restore_codec_state(const TrainingState& state, Gradients& gradients) {
  const SavedCodecState fresh = gradients.codec_state();
  if (is_empty(fresh)) return gradients.begin_codecs(state.progress.step);
  if (run_.is_served()) return restore_worker_state(state, fresh, gradients);
  const FoundState found = find_codec_state(place_of_state(run_.options.resume, state), fresh);
  std::int32_t missing = found.state ? 0 : 1;
  allreduce(run_.group, std::span(&missing, 1), {.name = "ranks without their codec's state"});
  if (missing == 0) return gradients.restore(*found.state);
  if (!found.state) run_.output.warn(fmt::format("no codec state: {}", found.reason));
  if (run_.place.rank == 0)
    run_.output.warn(
        fmt::format("{} of {} ranks have no codec state to resume from: values that the codec had left out of earlier "
                    "gradients are lost, and the codec restarts empty on every rank",
                    missing, run_.place.ranks));
  gradients.begin_codecs(state.progress.step);
}

/// Workers are not a group: each restores the state that it finds, also if other servers have other parts of the
/// tables.
void Checkpoints::restore_worker_state(const TrainingState& state, const SavedCodecState& fresh, Gradients& gradients) {
  FoundState found = find_codec_state(place_of_state(run_.options.resume, state), fresh, Lengths::any);
  try {
    if (found.state) return gradients.restore(*found.state);
  } catch (const Misuse& misuse) {
    found.reason = misuse.what();
  }
  run_.output.warn(fmt::format("no codec state: {}", found.reason));
  run_.output.warn(
      "values that this worker's codec had left out of earlier gradients are lost; other workers keep theirs");
  gradients.begin_codecs(state.progress.step);
}

void Checkpoints::save(const TrainingState& state, Descent& descent) {
  average_statistics(run_, state);
  at::Tensor parameters = state.parameters;
  const Kept kept = descent.kept(parameters);
  save_codecs(state, descent.gradients());
  if (run_.place.rank != 0) return;
  unsaved_.reset();
  const std::string& file = run_.options.checkpoint;
  try {
    save_checkpoint(file, {run_state_of(run_, state), layout_of(state.network), parameters, state.buffers, kept});
    run_.output.note(fmt::format("checkpoint {} at step {}", file, state.progress.step));
  } catch (const SystemFailure& failure) {
    unsaved_ = failure;
  }
}

void Checkpoints::save_codecs(const TrainingState& state, const Gradients& gradients) {
  const SavedCodecState codecs = gradients.codec_state();
  if (is_empty(codecs)) return;
  try {
    save_codec_state(place_of_state(run_.options.checkpoint, state), codecs);
  } catch (const SystemFailure& failure) {
    run_.output.warn(fmt::format("cannot save the codec's state: {}", failure.what()));
  }
}

}  // namespace syncopate::train
