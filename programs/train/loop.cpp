// The training loop: its last step, the work between steps, and how a rank ends.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ranks/equal.hpp"
#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/tooling/units.hpp"
#include "training.hpp"

namespace syncopate::train {
namespace {

std::string digest_of(const at::Tensor& parameters) {
  return fmt::format("{:016x}",
                     XXH3_64bits(parameters.const_data_ptr<float>(), 4 * static_cast<std::size_t>(parameters.numel())));
}

}  // namespace

bool Training::done() const {
  return (options_.steps && state_.progress.step >= *options_.steps) ||
         (options_.epochs && state_.progress.epoch >= *options_.epochs);
}

std::uint64_t Training::last_step() const {
  const input::Progress& at = state_.progress;
  if (done()) return at.step;
  const std::uint64_t last = options_.steps.value_or(UINT64_MAX);
  if (!options_.epochs) return last;
  return std::min(last, at.step + steps_left(parts_, at, data_->training_samples(), place_.ranks));
}

int Training::run() {
  begin_run();
  interrupt_.emplace();
  const std::uint64_t last = last_step();
  EndRow end;
  while (!done() && notices_.signal() == 0) {
    if (&part_at(parts_, state_.progress.epoch) != part_) enter_next_part();
    const bool reaches_on = descent_->reaches_into_next_step();
    if (!reaches_on && state_.progress.step + 1 == traced_) begin_trace();
    end.rows.push_back(step());
    last_step_s_ = end.rows.back().times.step_s;
    if (!reaches_on) end_trace();
    output_.step(end.rows.back(), last);
    after_step();
  }
  finish_run(end);
  return end.signal;
}

void Training::begin_run() {
  if (place_.rank == 0 && !is_served()) output_.clear_folder();
  barrier(group_);
  output_.open_folder();
  output_.begin(description());
  const std::uint64_t first = state_.progress.step + 1, last = last_step();
  const std::uint64_t followed = descent_->reaches_into_next_step() && last > first ? last - 1 : last;
  traced_ = options_.out.empty() ? 0 : options_.trace_step.value_or(std::min(first + 9, followed));
  if (done() && place_.rank == 0)
    output_.warn(
        fmt::format("nothing left to train: already at step {} and epoch {}; --steps and --epochs count from the first "
                    "step of the training",
                    state_.progress.step, state_.progress.epoch));
  if (!is_served() && place_.rank == 0 && std::getenv("SYNCOPATE_SERVERS") != nullptr)
    output_.warn(
        "the servers of this job (SYNCOPATE_SERVERS, `syncopate run --servers`) are not used: give --exchange "
        "parameter_server, or leave out --servers");
  if (options_.origin_rate > 0 && place_.rank == 0)
    output_.warn(fmt::format("each rank reads at most {} a second from --data: --origin-rate limits it",
                             format_bytes(static_cast<double>(options_.origin_rate))));
  batches_ = data_->training({group_, {place_.rank, place_.ranks, state_.seed}, state_.progress, plan_of_steps(last)});
  if (options_.recipe && !done()) output_.part(*part_, parts_.size(), state_.progress.step);
}

/// Prepares the steps of the next part while the last steps of this part train.
input::Pipeline::Plan Training::plan_of_steps(std::uint64_t last) const {
  return [this, last](const input::Progress& at) -> std::optional<input::StepPlan> {
    if (at.step >= last) return std::nullopt;
    const Part& part = part_at(parts_, at.epoch);
    return input::StepPlan{train::samples_per_step(part, place_.ranks), data_->side(part.options.resolution)};
  };
}

/// Saves the checkpoint first: a second signal, or a launcher's timeout, may end this process at any time.
void Training::finish_run(EndRow& end) {
  settle();
  if (is_served() && !options_.checkpoint.empty()) save();  // the servers run until the last worker has finished
  if (is_served()) end.served = descent_->gradients().finish_served();
  exchange_notices();
  end.signal = done() ? 0 : notices_.signal();
  share_weights();
  if (!is_served() && !options_.checkpoint.empty()) save();
  if (end.signal == 0 && !evaluation_ && options_.evaluate_every != 0u) report_evaluation();
  barrier(group_);
  end.steps = state_.progress.step;
  end.evaluation = evaluation_;
  end.tiers = batches_->tiers();
  end.digest = digest_of(parameters_);
  output_.end(end);
  output_.record(description());  // with the run's duration
  if (!alone())
    require_equal(group_, {{{"the digest of all parameters", end.digest}}},
                  "the ranks have trained different models; compare their data and their processors");
  barrier(group_);  // no rank leaves or fails while another may still need it
  if (unsaved_) throw SystemFailure(*unsaved_);
  if (output_.unwritten()) throw SystemFailure(*output_.unwritten());
}

/// Clocks of ranks differ, so all ranks begin the trace after a barrier.
void Training::begin_trace() {
  barrier(group_);
  trace_.restart();
}

void Training::end_trace() {
  if (!trace_.running()) return;
  trace_.stop();
  output_.trace(trace_.spans());
  output_.record(description());  // with the buckets of this step
}

/// If an exchange extends into the next step, the traced step lasts from backward pass to backward pass.
void Training::settle() {
  descent_->gradients().settle();
  if (descent_->reaches_into_next_step()) end_trace();
}

void Training::after_step() {
  const input::Progress& at = state_.progress;
  evaluation_.reset();
  const std::uint64_t every = options_.checkpoint_every;
  if (every > 0 && at.step % every == 0 && !done()) {  // the last checkpoint is written at the end
    save();
    if (unsaved_)
      output_.warn(fmt::format("{}; training goes on; the next checkpoint is at step {}", unsaved_->what(),
                               std::min(at.step + every, last_step())));
  }
  const bool epoch_ended = at.sample == 0;
  if (epoch_ended) note_tiers(at.epoch - 1);
  const bool due =
      options_.evaluate_every ? *options_.evaluate_every > 0 && at.step % *options_.evaluate_every == 0 : epoch_ended;
  if (due) report_evaluation();
  static_cast<void>(descent_->gradients().take_waited_s());  // waits of evaluation and checkpoints belong to no step
}

/// Rank 0's samples by tier. The pipeline is ahead of training and has read all of them.
void Training::note_tiers(std::uint64_t epoch) {
  if (place_.rank != 0) return;
  for (const cache::Counters& row : batches_->tiers())
    if (row.epoch == epoch) output_.note(text_of(row));
}

/// Workers have no common step at which all could evaluate; worker 0 evaluates.
void Training::report_evaluation() {
  if (is_served() && place_.rank != 0) return;
  evaluation_ = evaluate();
  output_.epoch(epochs_trained(), state_.progress.step, *evaluation_);
}

double Training::epochs_trained() const {
  const input::Progress& at = state_.progress;
  return static_cast<double>(at.epoch) + static_cast<double>(at.sample) / static_cast<double>(order_->samples());
}

void Training::average_statistics() {
  if (alone() || group_.size() == 1 || buffers_.numel() == 0) return;
  allreduce(group_, view_of(buffers_), {.op = ReduceOp::average, .name = "batch-norm statistics"});
}

/// On a write error rank 0 keeps the error in `unsaved_`.
void Training::save() {
  settle();
  average_statistics();
  at::Tensor parameters = parameters_;
  const Kept kept = descent_->kept(parameters);
  save_codec_state();
  if (place_.rank != 0) return;
  unsaved_.reset();
  try {
    save_checkpoint(options_.checkpoint, {state_, layout_of(network_), parameters, buffers_, kept});
    output_.note(fmt::format("checkpoint {} at step {}", options_.checkpoint, state_.progress.step));
  } catch (const SystemFailure& failure) {
    unsaved_ = failure;
  }
}

void Training::exchange_notices() {
  notices_.signal_came(interrupt_->signal());
  notices_.exchange(last_step_s_);
  say_notices();
}

void Training::say_notices() {
  if (const std::string line = notices_.take_not_finite(); !line.empty()) output_.warn(line);
}

void Training::found_not_finite(const std::string& what, const std::string& gradient) {
  const std::uint64_t step = state_.progress.step + 1;
  const std::string text = fmt::format(
      "{} is not finite at step {} on rank {}: lower --lr, lengthen --warmup, or give --clip", what, step, place_.rank);
  if (options_.stop_on_nan) throw NotFinite(text, {place_.rank, place_.rank, "training", gradient});
  notices_.not_finite(step, text + " (--stop-on-nan ends a run there)");
}

}  // namespace syncopate::train
