// The sentence: a gradient, packed into a bucket, is encoded, combined by an exchange, decoded, and applied.
#include "sync/step.hpp"

#include <algorithm>

#include "kernel/cast.hpp"
#include "sync/traced.hpp"
#include "syncopate/error.hpp"

namespace syncopate::sync {

namespace {

ExchangeContext exchange_context(const StepContext& context, const Bucket& bucket, Run& run) {
  return {context.group, context.algorithm, bucket.name, run.answers};
}

/// A span of coding, if anything is coded.
std::optional<Traced> coding(const StepContext& context, const char* track, const Bucket& bucket) {
  if (std::ranges::none_of(bucket.runs, &Run::is_coded)) return std::nullopt;
  return std::optional<Traced>(std::in_place, context.trace, track, bucket.name, bucket.bytes);
}

void upcast(const Run& run) {
  for (const std::vector<Upcast>* const copies : {&run.gradients_upcast, &run.weights_upcast})
    for (const auto& [halves, floats] : *copies)
      kernel::cast({halves.dtype, floats.dtype}, halves.bytes().data(), floats.bytes().data(), halves.count);
}

/// Rounds averages to the type of their gradients, once.
void downcast(const Run& run) {
  for (const auto& [halves, floats] : run.gradients_upcast)
    kernel::cast({floats.dtype, halves.dtype}, floats.bytes().data(), halves.bytes().data(), halves.count);
}

/// Says the run's first round, with the codec's state for this rank's rows.
void begin(Run& run, const StepContext& context) {
  for (std::size_t i = 0; i < run.part.size(); ++i) {
    run.part[i].kept = context.state.kept(run.gradients[i]);
    run.part[i].next = context.state.next(run.gradients[i]);
  }
  const compress::Moment moment{context.state.steps(), context.share.rank, context.share.ranks};
  run.round = run.coder->begin(run.part, moment, {run.wire.get(), run.wire_bytes});
}

/// Answers rounds until one answer is left, which ends the conversation.
void converse(Run& run, const StepContext& context, const ExchangeContext& exchange) {
  while (run.round) {
    const bool ends = run.round->ends;
    const compress::Answer answer = context.exchange.combine(exchange, *run.round);
    if (ends && !answer.declined) {
      run.round.reset();
      run.answer = answer;
    } else {
      run.round = run.coder->next(answer);
    }
  }
}

void hear_last(Run& run) {
  if (!run.answer) return;
  run.round = run.coder->next(*run.answer);
  run.answer.reset();
  if (run.round) throw Misuse("a codec says a round behind one that it called the last");
}

void combine_narrowed(Run& run, const StepContext& context, const ExchangeContext& exchange) {
  upcast(run);
  const Shared gradients{run.whole, run.part, run.packed, run.gradients, context.cut};
  context.exchange.narrow(exchange, gradients);
  begin(run, context);
  converse(run, context, exchange);
  hear_last(run);
  context.exchange.widen(exchange, gradients);
}

/// The weights of a run are cut and packed as its gradients were.
void join(Run& run, const StepContext& context, const ExchangeContext& exchange, const WeightUpdater& updater) {
  std::vector<compress::Tensor> weights = run.whole;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i].values = updater.weights_of(run.gradients[i]);
  context.exchange.join(exchange, {weights, {}, run.packed, run.gradients, context.cut});
}

}  // namespace

void encode(Bucket& bucket, const StepContext& context) {
  if (context.exchange.narrow != nullptr) return;
  const auto span = coding(context, "encode", bucket);
  for (Run& run : bucket.runs) {
    upcast(run);
    begin(run, context);
  }
}

void combine(Bucket& bucket, const StepContext& context) {
  const Traced span(context.trace, "exchange", bucket.name, bucket.bytes);
  for (Run& run : bucket.runs) {
    const ExchangeContext exchange = exchange_context(context, bucket, run);
    if (context.exchange.narrow != nullptr)
      combine_narrowed(run, context, exchange);
    else
      converse(run, context, exchange);
  }
}

void decode(Bucket& bucket, const StepContext& context) {
  const auto has_work = [](const Run& run) { return run.answer.has_value() || !run.gradients_upcast.empty(); };
  if (std::ranges::none_of(bucket.runs, has_work)) return;
  const auto span = coding(context, "decode", bucket);
  for (Run& run : bucket.runs) {
    hear_last(run);
    downcast(run);
  }
}

void deliver(Bucket& bucket, const StepContext& context, WeightUpdater& updater) {
  updater.complete(bucket);
  if (!updater.spreads()) return;
  const Traced span(context.trace, "broadcast", bucket.name, bytes_of(bucket.weights));
  if (context.exchange.join != nullptr) {
    for (Run& run : bucket.runs) join(run, context, exchange_context(context, bucket, run), updater);
    return;
  }
  for (const Buffer weights : bucket.weights)
    context.exchange.spread(exchange_context(context, bucket, bucket.runs.front()), weights);
}

}  // namespace syncopate::sync
