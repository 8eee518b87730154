// One step of a part is the arithmetic of a rank; between two parts the state stays in memory.
#include "part_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "random.hpp"
#include "record/codec_state.hpp"
#include "record/run_record.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::train {
namespace {

constexpr std::uint64_t kSlowSteps = 0x510;  ///< the draw of steps in which a rank is slow

/// Adds the time of its lifetime to a sum, and a span to the trace.
class Timed final {
 public:
  Timed(double& seconds, Trace& trace, const char* track)
      : seconds_(seconds), trace_(trace), track_(track), begin_s_(trace.now_s()) {}
  ~Timed() {
    seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count();
    if (track_ && trace_.running()) trace_.add({track_, track_, begin_s_, trace_.now_s(), 0});
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Trace& trace_;
  const char* track_;  ///< null: no span
  double begin_s_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

PartTraining::PartTraining(Run& run, TrainingState& state, const Part& part, const ExchangePlan& plan,
                           std::optional<Kept> earlier, std::unique_ptr<ServedWeights> served)
    : run_(run),
      state_(state),
      part_(part),
      descent_(run, state.network, part.options, plan, {state.seed, state.progress.step, std::move(earlier)},
               std::move(served)) {
  gradients().watch([this](const std::string& name) {
    run_.found_not_finite(state_.progress.step + 1, "the gradient of " + name, name);
  });
}

StepRow PartTraining::step(Batches& batches) {
  const bool reaches_on = descent_.reaches_into_next_step();
  StepRow row;
  row.step = state_.progress.step + 1;
  row.part = run_.options.recipe ? part_.number : 0;
  row.learning_rate = learning_rate();
  if (!reaches_on && row.step == run_.traced_step) begin_trace();
  const input::SampleShare share =
      state_.order.share(state_.progress, run_.samples_per_step(part_), run_.place.rank, run_.place.ranks);
  Losses losses;
  {
    const Timed whole(row.times.step_s, run_.trace, nullptr);
    const Batch batch = read_batch(batches, row.times);
    const std::size_t mine = share.mine.size();
    const std::size_t pieces = std::min<std::size_t>(run_.options.accumulate, std::max<std::size_t>(mine, 1));
    for (std::size_t i = 0; i < pieces; ++i) {
      const Range piece = even_part(mine, pieces, i);
      const Batch samples = piece.size() == 0 ? Batch{} : part_of(batch, piece);
      micro_batch({samples, piece.size(), share, i == 0, i + 1 == pieces}, row, losses);
    }
    finish(row);
  }
  if (losses.samples > 0) row.loss = losses.sum / static_cast<double>(losses.samples);
  row.wire_bytes = gradients().wire_bytes();
  const StepStatistics statistics = gradients().statistics();
  row.payload_bytes = statistics.payload_bytes;
  if (statistics.predicted_s > 0) row.predicted_s = statistics.predicted_s;
  row.measuring = statistics.measuring;
  row.samples_per_second = static_cast<double>(share.total) / row.times.step_s;
  advance(state_.progress, share.total, state_.order.samples());
  row.epoch = run_.epochs_trained(state_.progress);
  if (!reaches_on) end_trace();
  return row;
}

/// Names each image that another one replaces, once.
Batch PartTraining::read_batch(Batches& batches, StepTimes& times) {
  const Timed waiting(times.input_s, run_.trace, "input");
  Batch batch = batches.next();
  for (const std::string& refused : batch.refused) run_.output.warn(refused + "; another image replaces it");
  return batch;
}

/// The exchange averages over ranks, so each rank weighs its samples by ranks / total. The result is the mean gradient
/// of all samples of the step, even if ranks have different numbers of samples.
void PartTraining::micro_batch(const MicroBatch& batch, StepRow& row, Losses& losses) {
  const auto& [samples, count, share, first, last] = batch;
  if (count == 0) {
    enter_backward(batch, row);
    return gradients().without_backward();
  }
  const auto mine = static_cast<double>(count);
  const double weight = run_.alone() ? mine / static_cast<double>(share.mine.size())
                                     : mine * run_.place.ranks / static_cast<double>(share.total);
  at::Tensor loss;
  {
    const Timed forward(row.times.forward_s, run_.trace, "forward");
    loss = state_.network.loss(samples.input, samples.target);
    const auto mean = loss.item<double>();
    if (!std::isfinite(mean)) run_.found_not_finite(row.step, "the loss", {});
    losses.sum += mine * mean;
    losses.samples += count;
    if (weight != 1.0) loss = loss * weight;
  }
  const double waited_s = gradients().take_waited_s();  // for weights, within the forward pass
  row.times.forward_s -= waited_s;
  row.times.wait_s += waited_s;
  if (run_.options.slow && last) sleep_as_slow(row.times);
  enter_backward(batch, row);
  const Timed backward(row.times.backward_s, run_.trace, nullptr);  // its spans are those of the gradients
  gradients().begin_backward(last);
  loss.backward();
}

/// Emulates a slow processor, whose gradients come later: between its passes the rank sleeps for the time of both
/// passes, without waiting, times (factor - 1). The backward pass is assumed to take twice the time of the forward
/// pass.
void PartTraining::sleep_as_slow(StepTimes& times) {
  const auto& [rank, factor, share] = *run_.options.slow;
  const std::uint64_t drawn = Random{state_.seed, state_.progress.step, kSlowSteps}.bits() >> 11;
  if (rank != run_.place.rank || static_cast<double>(drawn) * 0x1p-53 >= share) return;
  const double seconds = (factor - 1) * 3 * times.forward_s;
  times.slept_s += seconds;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Between the passes no exchange is under way: all ranks have the last step's weights, and the next rate may be set.
void PartTraining::enter_backward(const MicroBatch& batch, StepRow& row) {
  finish_exchange();
  row.times.wait_s += gradients().take_waited_s();
  if (!batch.first) return;
  {
    const Timed waiting(row.times.wait_s, run_.trace, nullptr);
    run_.exchange_notices_when_due();
  }
  descent_.begin_step({.rate = learning_rate(), .step = state_.progress.step + 1});
  if (descent_.reaches_into_next_step() && row.step == run_.traced_step) begin_trace();
}

double PartTraining::learning_rate() const {
  const input::Progress& at = state_.progress;
  if (part_.rates) return learning_rate_at(*part_.rates, at, state_.order.samples());
  return learning_rate_at(run_.schedule, at.step);
}

/// Applies each bucket while later ones are still under way.
void PartTraining::finish(StepRow& row) {
  gradients().finish([&](std::size_t first, std::size_t last) {
    const Timed optimizer(row.times.optimizer_s, run_.trace, "optimizer");
    descent_.update(first, last);
  });
  row.times.wait_s += gradients().take_waited_s();
}

/// Clocks of ranks differ, so all ranks begin the trace after a barrier.
void PartTraining::begin_trace() {
  barrier(run_.group);
  run_.trace.restart();
}

void PartTraining::end_trace() {
  if (!run_.trace.running()) return;
  run_.trace.stop();
  run_.output.trace(run_.trace.spans());
  run_.output.record(record());  // with the buckets of this step
}

void PartTraining::finish_exchange() {
  gradients().finish_exchange();
  if (descent_.reaches_into_next_step()) end_trace();
}

/// Where ranks drift apart between broadcasts, rank 0's weights are the weights of the run.
void PartTraining::share_weights() {
  if (descent_.updater() == Updater::every_rank) broadcast(run_.group, view_of(state_.parameters), {.name = "weights"});
}

PartState PartTraining::leave() {
  finish_exchange();
  if (gradients().served() != nullptr) return {.served = gradients().take_served()};
  share_weights();
  Kept kept = descent_.kept(state_.parameters);
  if (run_.place.rank != 0) kept.state.clear();
  for (auto& [name, values] : kept.state) values = values.clone();  // the optimizer that owns the memory is destroyed
  return {std::move(kept), gradients().codec_state()};
}

void PartTraining::carry_codec_state(const SavedCodecState& earlier) {
  const SavedCodecState fresh = gradients().codec_state();
  const std::string difference = difference_of(earlier, fresh);
  if (difference.empty() && !fresh.gradients.empty()) return gradients().restore(earlier);
  if (!is_empty(earlier) && run_.place.rank == 0)
    run_.output.warn(
        fmt::format("part {} drops the codec's leftovers of part {}: {}", part_.number, part_.number - 1, difference));
  gradients().begin_codecs(state_.progress.step);
}

Json PartTraining::record() const { return run_record(run_, state_, part_, descent_); }

}  // namespace syncopate::train
