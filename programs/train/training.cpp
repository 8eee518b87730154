// The training loop: how a rank starts, the work between steps, and how it ends.
#include "training.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <ranges>

#include "evaluation.hpp"
#include "ranks/equal.hpp"
#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::train {
namespace {

std::string digest_of(const at::Tensor& parameters) {
  return fmt::format("{:016x}",
                     XXH3_64bits(parameters.const_data_ptr<float>(), 4 * static_cast<std::size_t>(parameters.numel())));
}

}  // namespace

Training::Training(Group& group, const Place& place, const Options& options)
    : run_(group, place, options), checkpoints_(run_), state_(initial_state(run_, checkpoints_.loaded())) {
  const std::uint64_t before = state_.progress.step;
  require(!options.trace_step || (*options.trace_step > before && *options.trace_step <= last_step()),
          "--trace-step {}: this run trains steps {} to {}", options.trace_step.value_or(0), before + 1, last_step());
  for (const Part& part : run_.parts)  // all, so that an impossible part is an error before the first step
    in_part(part, [&] { plans_.push_back(plan_exchange(run_, state_.network, part.options)); });
  if (run_.is_served() && place.rank == 0) run_.output.clear_folder();  // before any other worker can begin
  warn_about_data();
  begin_part(state_.resumed ? std::optional(checkpoints_.take_kept()) : std::nullopt);
  go_on_with_servers();
  if (state_.resumed) checkpoints_.restore_codec_state(state_, part_->gradients());
}

void Training::warn_about_data() {
  if (run_.place.rank != 0) return;
  const Options& o = run_.options;
  if (state_.resumed) run_.output.note(fmt::format("resumes from step {} of {}", state_.progress.step, o.resume));
  const std::size_t samples = run_.data->training_samples(), classes = run_.data->class_names().size();
  for (const Part& part : run_.parts)
    if (const std::size_t wanted = run_.samples_per_step(part); wanted > samples)
      run_.output.warn(fmt::format("a step of {} samples is more than the {} of --data: each step has {}", wanted,
                                   samples, samples));
  if (classes > 0 && static_cast<std::size_t>(run_.sizes.classes) != classes)
    run_.output.warn(fmt::format("model {} has {} classes, --data has {}", o.model, run_.sizes.classes, classes));
}

void Training::begin_part(std::optional<Kept> earlier, std::unique_ptr<ServedWeights> served) {
  const Part& part = part_at(run_.parts, state_.progress.epoch);
  part_.emplace(run_, state_, part, plans_[part.number - 1], std::move(earlier), std::move(served));
}

void Training::enter_next_part() {
  PartState left = part_->leave();
  part_.reset();
  const bool is_served = left.served != nullptr;
  begin_part(std::move(left.kept), std::move(left.served));
  if (!is_served) part_->carry_codec_state(left.codecs);
  run_.output.part(part_->part(), run_.parts.size(), state_.progress.step);
}

/// Servers restored from snapshots are ahead of this run, so the run takes up its samples at their step.
void Training::go_on_with_servers() {
  const std::uint64_t step = run_.is_served() ? part_->gradients().served()->steps() : 0;
  input::Progress& at = state_.progress;
  if (step <= at.step) return;
  require(!run_.options.recipe,
          "the servers resume from step {} of a snapshot, but --recipe starts from the beginning; allowed: --resume "
          "with a checkpoint and servers without --snapshots, or an empty folder",
          step);
  while (at.step < step) {
    const std::size_t samples = state_.order.samples();
    input::advance(at, std::min<std::size_t>(run_.samples_per_step(part_->part()), samples - at.sample), samples);
  }
  if (run_.place.rank == 0) run_.output.note(fmt::format("the servers and the workers resume from step {}", step));
}

int Training::run() {
  begin_run();
  run_.interrupt.emplace();
  const std::uint64_t last = last_step();
  EndRow end;
  while (!done() && run_.notices.signal() == 0) {
    if (&part_at(run_.parts, state_.progress.epoch) != &part_->part()) enter_next_part();
    end.rows.push_back(part_->step(*batches_));
    run_.last_step_s = end.rows.back().times.step_s;
    run_.output.step(end.rows.back(), last);
    after_step();
  }
  finish_run(end);
  return end.signal;
}

void Training::begin_run() {
  const Options& o = run_.options;
  const Place& place = run_.place;
  if (place.rank == 0 && !run_.is_served()) run_.output.clear_folder();
  barrier(run_.group);
  run_.output.open_folder();
  run_.output.begin(part_->record());
  const std::uint64_t first = state_.progress.step + 1, last = last_step();
  const std::uint64_t followed = part_->descent().reaches_into_next_step() && last > first ? last - 1 : last;
  run_.traced_step = o.out.empty() ? 0 : o.trace_step.value_or(std::min(first + 9, followed));
  if (done() && place.rank == 0)
    run_.output.warn(
        fmt::format("nothing left to train: already at step {} and epoch {}; --steps and --epochs count from the first "
                    "step of the training",
                    state_.progress.step, state_.progress.epoch));
  if (!run_.is_served() && place.rank == 0 && std::getenv("SYNCOPATE_SERVERS") != nullptr)
    run_.output.warn(
        "the servers of this job (SYNCOPATE_SERVERS, `syncopate run --servers`) are not used: give --exchange "
        "parameter_server, or leave out --servers");
  if (o.origin_rate > 0 && place.rank == 0)
    run_.output.warn(fmt::format("each rank reads at most {} a second from --data: --origin-rate limits it",
                                 format_bytes(static_cast<double>(o.origin_rate))));
  const auto side_of = [this](const Part& part) { return run_.data->side(part.options.resolution); };
  batches_ = run_.data->training({run_.group,
                                  {place.rank, place.ranks, state_.seed},
                                  state_.progress,
                                  plan_of_steps(last),
                                  std::ranges::min(run_.parts | std::views::transform(side_of))});
  if (o.recipe && !done()) run_.output.part(part_->part(), run_.parts.size(), state_.progress.step);
}

/// Prepares the steps of the next part while the last steps of this part train.
input::Pipeline::Plan Training::plan_of_steps(std::uint64_t last) const {
  return [this, last](const input::Progress& at) -> std::optional<input::StepPlan> {
    if (at.step >= last) return std::nullopt;
    const Part& part = part_at(run_.parts, at.epoch);
    return input::StepPlan{run_.samples_per_step(part), run_.data->side(part.options.resolution)};
  };
}

void Training::after_step() {
  const input::Progress& at = state_.progress;
  const Options& o = run_.options;
  evaluation_.reset();
  const std::uint64_t every = o.checkpoint_every;
  if (every > 0 && at.step % every == 0 && !done()) {  // the last checkpoint is written at the end
    save();
    if (checkpoints_.unsaved())
      run_.output.warn(fmt::format("{}; training goes on; the next checkpoint is at step {}",
                                   checkpoints_.unsaved()->what(), std::min(at.step + every, last_step())));
  }
  const bool epoch_ended = at.sample == 0;
  if (epoch_ended) note_tiers(at.epoch - 1);
  const bool due = o.evaluate_every ? *o.evaluate_every > 0 && at.step % *o.evaluate_every == 0 : epoch_ended;
  if (due) report_evaluation();
  static_cast<void>(part_->gradients().take_waited_s());  // waits of evaluation and checkpoints belong to no step
}

/// Rank 0's samples by tier. The pipeline is ahead of training and has read all of them.
void Training::note_tiers(std::uint64_t epoch) {
  if (run_.place.rank != 0) return;
  for (const cache::Counters& row : batches_->tiers())
    if (row.epoch == epoch) run_.output.note(text_of(row));
}

/// Workers have no common step at which all could evaluate; worker 0 evaluates.
void Training::report_evaluation() {
  if (run_.is_served() && run_.place.rank != 0) return;
  part_->finish_exchange();
  evaluation_ = evaluate(run_, state_, part_->part().options.resolution);
  run_.output.epoch(run_.epochs_trained(state_.progress), state_.progress.step, *evaluation_,
                    part_->gradients().take_sent());
}

void Training::save() {
  part_->finish_exchange();
  checkpoints_.save(state_, part_->descent());
}

/// Saves the checkpoint first: a second signal, or a launcher's timeout, may end this process at any time.
void Training::finish_run(EndRow& end) {
  const bool saves = !run_.options.checkpoint.empty(), served = run_.is_served();
  part_->finish_exchange();
  if (served && saves) save();  // the servers run until the last worker has finished
  if (served) end.served = part_->gradients().finish_served();
  run_.exchange_notices();
  end.signal = done() ? 0 : run_.notices.signal();
  part_->share_weights();
  if (!served && saves) save();
  if (end.signal == 0 && !evaluation_ && run_.options.evaluate_every != 0u) report_evaluation();
  barrier(run_.group);
  end.steps = state_.progress.step;
  end.evaluation = evaluation_;
  end.tiers = batches_->tiers();
  end.digest = digest_of(state_.parameters);
  run_.output.end(end);
  run_.output.record(part_->record());  // with the run's duration
  if (!run_.alone())
    require_equal(run_.group, {{{"the digest of all parameters", end.digest}}},
                  "the ranks have trained different models; compare their data and their processors");
  barrier(run_.group);  // no rank leaves or fails while another may still need it
  if (checkpoints_.unsaved()) throw SystemFailure(*checkpoints_.unsaved());
  if (run_.output.unwritten()) throw SystemFailure(*run_.output.unwritten());
}

}  // namespace syncopate::train
