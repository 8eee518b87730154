// Entering a part: training goes on with the state of the previous part, or with that part's state in a checkpoint.
#include <xxhash.h>

#include <algorithm>

#include "require.hpp"
#include "syncopate/collective.hpp"
#include "training.hpp"

namespace syncopate::train {

void Training::begin_descent(std::optional<Kept> earlier) {
  const auto number = static_cast<std::size_t>(part_ - parts_.data());
  descent_ = std::make_unique<Descent>(context_, part_->options, plans_[number],
                                       Earlier{state_.seed, state_.progress.step, std::move(earlier)});
  descent_->gradients().watch([this](const std::string& name) { found_not_finite("the gradient of " + name, name); });
}

/// Works as if a checkpoint were written and the next part resumed from it: the results are bit-identical.
void Training::enter_next_part() {
  settle();
  share_weights();
  Kept kept = descent_->kept(parameters_);
  if (place_.rank != 0) kept.state.clear();                         // rank 0's counts
  for (auto& [name, values] : kept.state) values = values.clone();  // the optimizer that owns the memory is destroyed
  const SavedCodecState state = descent_->gradients().codec_state();
  descent_.reset();
  part_ = &part_at(parts_, state_.progress.epoch);
  begin_descent(std::move(kept));
  carry_codec_state(state);
  output_.part(*part_, parts_.size(), state_.progress.step);
}

/// Servers restored from snapshots are ahead of this run, so the run takes up its samples at their step.
void Training::go_on_with_servers() {
  const std::uint64_t step = is_served() ? descent_->gradients().served()->steps() : 0;
  input::Progress& at = state_.progress;
  if (step <= at.step) return;
  require(!options_.recipe,
          "the servers resume from step {} of a snapshot, but --recipe starts from the beginning; allowed: --resume "
          "with a checkpoint and servers without --snapshots, or an empty folder",
          step);
  while (at.step < step) {
    const std::size_t total = std::min<std::size_t>(samples_per_step(), order_->samples() - at.sample);
    input::advance(at, total, order_->samples());
  }
  if (place_.rank == 0) output_.note(fmt::format("the servers and the workers resume from step {}", step));
}

/// Where ranks drift apart between broadcasts, rank 0's weights are the weights of the run.
void Training::share_weights() {
  if (descent_->updater() == Updater::every_rank) broadcast(group_, view_of(parameters_), {.name = "weights"});
}

/// Codecs count the steps of the whole training: their random draws and their warm-up do not depend on where a run was
/// interrupted or a part began.
void Training::begin_codecs(SavedCodecState fresh) {
  if (fresh.gradients.empty()) return;  // no synchronizer
  fresh.steps = state_.progress.step;
  descent_->gradients().restore(fresh);
}

void Training::carry_codec_state(const SavedCodecState& earlier) {
  SavedCodecState fresh = descent_->gradients().codec_state();
  const std::string difference = difference_of(earlier, fresh);
  if (difference.empty() && !fresh.gradients.empty()) return descent_->gradients().restore(earlier);
  if (!is_empty(earlier) && place_.rank == 0)
    output_.warn(fmt::format("part {} drops the codec's leftovers of part {}: {}", part_->number, part_->number - 1,
                             difference));
  begin_codecs(std::move(fresh));
}

/// If workers hold different copies of the weights, only the step identifies the codecs' state.
StateOf Training::place_of_state(const std::string& checkpoint) const {
  const auto bytes = static_cast<std::size_t>(4 * parameters_.numel());
  const bool same_everywhere = !is_served() || (options_.consistency == "bsp" && options_.answers == "none");
  return {.file = checkpoint,
          .step = state_.progress.step,
          .parameters = same_everywhere ? XXH3_64bits(parameters_.const_data_ptr<float>(), bytes) : 0,
          .rank = place_.rank,
          .ranks = place_.ranks};
}

/// Either all ranks restore the state of their codecs, or none does: with residuals of some ranks only, the loss could
/// not be accounted for. Workers are not a group: each restores the state that it finds.
void Training::find_codec_state() {
  SavedCodecState fresh = descent_->gradients().codec_state();
  if (is_empty(fresh)) return begin_codecs(std::move(fresh));
  const FoundState found = train::find_codec_state(place_of_state(options_.resume), fresh);
  std::int32_t missing = found.state ? 0 : 1;
  allreduce(group_, std::span(&missing, 1), {.name = "ranks without their codec's state"});
  if (missing == 0) return descent_->gradients().restore(*found.state);
  if (!found.state) output_.warn(fmt::format("no codec state: {}", found.reason));
  if (is_served())
    output_.warn(
        "values that this worker's codec had left out of earlier gradients are lost; other workers keep theirs");
  else if (place_.rank == 0)
    output_.warn(
        fmt::format("{} of {} ranks have no codec state to resume from: values that the codec had left out of earlier "
                    "gradients are lost, and the codec restarts empty on every rank",
                    missing, place_.ranks));
  begin_codecs(std::move(fresh));
}

/// A rank that cannot write logs a warning, and training goes on.
void Training::save_codec_state() {
  const SavedCodecState state = descent_->gradients().codec_state();
  if (is_empty(state)) return;
  try {
    train::save_codec_state(place_of_state(options_.checkpoint), state);
  } catch (const SystemFailure& failure) {
    output_.warn(fmt::format("cannot save the codec's state: {}", failure.what()));
  }
}

}  // namespace syncopate::train
