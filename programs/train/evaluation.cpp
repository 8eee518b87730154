// Ranks evaluate equal shares of the held-out samples; one all-reduce adds their sums.
#include "evaluation.hpp"

#include <algorithm>
#include <array>

#include "syncopate/collective.hpp"

namespace syncopate::train {
namespace {

constexpr std::size_t kEvaluationBatch = 64;
constexpr std::uint64_t kTextPieces = 1024;  ///< default number of evaluated samples of text: held-out text is long

double correct_of(const at::Tensor& logits, const at::Tensor& target) {
  return logits.argmax(1).eq(target).sum().item<double>();
}

/// Samples whose label is among the five classes of the largest logits.
double among_five_of(const at::Tensor& logits, const at::Tensor& target) {
  return std::get<1>(logits.topk(5, 1)).eq(target.unsqueeze(1)).sum().item<double>();
}

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

  const bool has_five = !text && run.sizes.classes > 5;
  std::array<double, 4> sums{};
  auto& [loss, correct, among_five, samples] = sums;
  const auto batches = run.data->evaluation({count, mine, kEvaluationBatch, run.data->side(resolution)});
  for (std::size_t begin = mine.begin; begin < mine.end; begin += kEvaluationBatch) {
    const Batch batch = batches->next();
    const auto [logits, target, weight] = state.network.answers(batch.input, batch.target, false).front();
    const auto n = static_cast<double>(batch.input.size(0));
    loss += n * at::cross_entropy_loss(logits, target).item<double>();
    if (!text) correct += correct_of(logits, target);
    if (has_five) among_five += among_five_of(logits, target);
    samples += n;
  }
  if (!run.alone()) allreduce(run.group, std::span<double>(sums), {.name = "evaluation"});
  Evaluation result;
  result.loss = loss / samples;
  if (!text) result.accuracy = correct / samples;
  if (has_five) result.top_5_accuracy = among_five / samples;
  return result;
}

}  // namespace syncopate::train
