// Ranks evaluate equal shares of the held-out samples; one all-reduce adds their sums.
#include "evaluation.hpp"

#include <algorithm>
#include <array>

#include "syncopate/collective.hpp"

namespace syncopate::train {
namespace {

constexpr std::size_t kEvaluationBatch = 64;
constexpr std::uint64_t kTextPieces = 1024;  ///< default number of evaluated samples of text: held-out text is long

}  // namespace

Evaluation evaluate(const Run& run, const TrainingState& state, int resolution) {
  average_statistics(run, state);
  const at::NoGradGuard no_grad;
  const std::size_t held_out = run.data->evaluation_samples();
  const bool text = run.model.input == DataKind::text, sampled = text || (run.alone() && run.place.ranks > 1);
  const std::uint64_t wanted = run.options.evaluate_samples.value_or(sampled ? kTextPieces : 0);
  const std::size_t count = wanted == 0 ? held_out : std::min<std::size_t>(wanted, held_out);
  const auto ranks = static_cast<std::size_t>(run.place.ranks), rank = static_cast<std::size_t>(run.place.rank);
  const Range mine = run.alone() || run.is_served() ? Range{0, count} : even_part(count, ranks, rank);

  std::array<double, 3> sums{};  // loss, correct, samples
  const auto batches = run.data->evaluation({count, mine, kEvaluationBatch, run.data->side(resolution)});
  for (std::size_t begin = mine.begin; begin < mine.end; begin += kEvaluationBatch) {
    const Batch batch = batches->next();
    const auto [logits, target, weight] = state.network.answers(batch.input, batch.target, false).front();
    const auto n = static_cast<double>(batch.input.size(0));
    sums[0] += n * at::cross_entropy_loss(logits, target).item<double>();
    if (!text) sums[1] += logits.argmax(1).eq(target).sum().item<double>();
    sums[2] += n;
  }
  if (!run.alone()) allreduce(run.group, std::span<double>(sums), {.name = "evaluation"});
  Evaluation result;
  result.loss = sums[0] / sums[2];
  if (!text) result.accuracy = sums[1] / sums[2];
  return result;
}

}  // namespace syncopate::train
