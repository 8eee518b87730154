// One step of training, and evaluation: the arithmetic of a rank.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "random.hpp"
#include "syncopate/collective.hpp"
#include "training.hpp"

namespace syncopate::train {
namespace {

constexpr std::size_t kEvaluationBatch = 64;
constexpr std::uint64_t kTextPieces = 1024;  ///< default number of evaluated samples of text: held-out text is long

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

StepRow Training::step() {
  const input::SampleShare share = order_->share(state_.progress, samples_per_step(), place_.rank, place_.ranks);
  StepRow row;
  row.step = state_.progress.step + 1;
  row.part = options_.recipe ? part_->number : 0;
  row.learning_rate = learning_rate();
  Losses losses;
  {
    const Timed whole(row.times.step_s, trace_, nullptr);
    const Batch batch = read_batch(row.times);
    const std::size_t parts = std::min<std::size_t>(options_.accumulate, std::max<std::size_t>(share.mine.size(), 1));
    for (std::size_t i = 0; i < parts; ++i) {
      const Range part = even_part(share.mine.size(), parts, i);
      const Batch samples = part.size() == 0 ? Batch{} : part_of(batch, part);
      micro_batch({samples, part.size(), share, i == 0, i + 1 == parts}, row, losses);
    }
    finish(row);
  }
  if (losses.samples > 0) row.loss = losses.sum / static_cast<double>(losses.samples);
  row.wire_bytes = descent_->gradients().wire_bytes();
  const StepStatistics statistics = descent_->gradients().statistics();
  if (statistics.predicted_s > 0) row.predicted_s = statistics.predicted_s;
  row.measuring = statistics.measuring;
  row.samples_per_second = static_cast<double>(share.total) / row.times.step_s;
  advance(state_.progress, share.total, order_->samples());
  row.epoch = epochs_trained();
  return row;
}

/// Names each image that another one replaces, once.
Batch Training::read_batch(StepTimes& times) {
  const Timed waiting(times.input_s, trace_, "input");
  Batch batch = batches_->next();
  for (const std::string& refused : batch.refused) output_.warn(refused + "; another image replaces it");
  return batch;
}

/// The exchange averages over ranks, so each rank weighs its samples by ranks / total. The result is the mean gradient
/// of all samples of the step, even if ranks have different numbers of samples.
void Training::micro_batch(const MicroBatch& batch, StepRow& row, Losses& losses) {
  const auto& [samples, count, share, first, last] = batch;
  if (count == 0) {
    enter_backward(batch, row);
    return descent_->gradients().without_backward();
  }
  const auto mine = static_cast<double>(count);
  const double weight =
      alone() ? mine / static_cast<double>(share.mine.size()) : mine * place_.ranks / static_cast<double>(share.total);
  at::Tensor loss;
  {
    const Timed forward(row.times.forward_s, trace_, "forward");
    loss = network_.loss(samples.input, samples.target);
    const auto mean = loss.item<double>();
    if (!std::isfinite(mean)) found_not_finite("the loss", {});
    losses.sum += mine * mean;
    losses.samples += count;
    if (weight != 1.0) loss = loss * weight;
  }
  if (options_.slow && last) sleep_as_slow(row.times);
  const double waited_s = descent_->gradients().take_waited_s();  // for weights, within the forward pass
  row.times.forward_s -= waited_s;
  row.times.wait_s += waited_s;
  enter_backward(batch, row);
  const Timed backward(row.times.backward_s, trace_,
                       nullptr);  // the spans of the backward pass are those of the gradients
  descent_->gradients().begin_backward(last);
  loss.backward();
}

/// Emulates a slow processor, whose gradients come later: between its passes the rank sleeps for the time of both
/// passes times (factor - 1). The backward pass is assumed to take twice the time of the forward pass.
void Training::sleep_as_slow(StepTimes& times) {
  const auto& [rank, factor, share] = *options_.slow;
  const std::uint64_t drawn = Random{state_.seed, state_.progress.step, kSlowSteps}.bits() >> 11;
  if (rank != place_.rank || static_cast<double>(drawn) * 0x1p-53 >= share) return;
  const double seconds = (factor - 1) * 3 * times.forward_s;
  times.slept_s += seconds;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Between the passes no exchange is under way: all ranks have the last step's weights, and the next rate may be set.
void Training::enter_backward(const MicroBatch& batch, StepRow& row) {
  settle();
  row.times.wait_s += descent_->gradients().take_waited_s();
  if (!batch.first) return;
  {
    const Timed waiting(row.times.wait_s, trace_, nullptr);
    notices_.signal_came(interrupt_->signal());
    notices_.exchange_when_due(last_step_s_);
  }
  say_notices();
  descent_->begin_step({.rate = learning_rate(), .step = state_.progress.step + 1});
  if (descent_->reaches_into_next_step() && row.step == traced_) begin_trace();
}

double Training::learning_rate() const {
  const input::Progress& at = state_.progress;
  return part_->rates ? learning_rate_at(*part_->rates, at, order_->samples()) : learning_rate_at(schedule_, at.step);
}

/// Applies each bucket while later ones are still under way.
void Training::finish(StepRow& row) {
  descent_->gradients().finish([&](std::size_t first, std::size_t last) {
    const Timed optimizer(row.times.optimizer_s, trace_, "optimizer");
    descent_->update(first, last);
  });
  row.times.wait_s += descent_->gradients().take_waited_s();
}

Evaluation Training::evaluate() {
  settle();
  average_statistics();
  const at::NoGradGuard no_grad;
  const std::size_t held_out = data_->evaluation_samples();
  const bool text = model_.input == DataKind::text, sampled = text || (alone() && place_.ranks > 1);
  const std::uint64_t wanted = options_.evaluate_samples.value_or(sampled ? kTextPieces : 0);
  const std::size_t count = wanted == 0 ? held_out : std::min<std::size_t>(wanted, held_out);
  const auto ranks = static_cast<std::size_t>(place_.ranks), rank = static_cast<std::size_t>(place_.rank);
  const Range mine = alone() || is_served() ? Range{0, count} : even_part(count, ranks, rank);

  std::array<double, 3> sums{};  // loss, correct, samples
  const auto batches = data_->evaluation({count, mine, kEvaluationBatch, data_->side(part_->options.resolution)});
  for (std::size_t begin = mine.begin; begin < mine.end; begin += kEvaluationBatch) {
    const Batch batch = batches->next();
    const auto [logits, target, weight] = network_.answers(batch.input, batch.target, false).front();
    const auto n = static_cast<double>(batch.input.size(0));
    sums[0] += n * at::cross_entropy_loss(logits, target).item<double>();
    if (!text) sums[1] += logits.argmax(1).eq(target).sum().item<double>();
    sums[2] += n;
  }
  if (!alone()) allreduce(group_, std::span<double>(sums), {.name = "evaluation"});
  Evaluation result;
  result.loss = sums[0] / sums[2];
  if (!text) result.accuracy = sums[1] / sums[2];
  return result;
}

}  // namespace syncopate::train
