// The sentence: a gradient, packed into a bucket, is encoded, combined by an exchange, decoded, and applied.
#include "sync/step.hpp"

#include "sync/traced.hpp"

namespace syncopate::sync {

namespace {

ExchangeContext exchange_context(const StepContext& context, const Bucket& bucket) {
  return {context.group, context.algorithm, bucket.name, context.answers};
}

/// This rank's rows of the run's gradients, with the codec's state for them.
std::span<const compress::Tensor> narrow(Run& run, const StepContext& context, const ExchangeContext& exchange) {
  for (std::size_t i = 0; i < run.part.size(); ++i) {
    run.part[i].kept = context.state.kept(run.gradients[i]);
    run.part[i].next = context.state.next(run.gradients[i]);
  }
  if (context.exchange.narrow != nullptr) context.exchange.narrow(exchange, {run.whole, run.part, run.packed});
  return run.part;
}

void widen(Run& run, const StepContext& context, const ExchangeContext& exchange) {
  if (context.exchange.widen != nullptr) context.exchange.widen(exchange, {run.whole, run.part, run.packed});
}

}  // namespace

double step(Bucket& bucket, const StepContext& context, const std::function<double()>& clock_s) {
  const compress::Moment moment{context.state.steps(), context.share.rank, context.share.ranks};
  {
    const Traced span(context.trace, "exchange", bucket.name, bucket.bytes);
    const ExchangeContext exchange = exchange_context(context, bucket);
    for (Run& run : bucket.runs) {
      const auto part = narrow(run, context, exchange);
      auto round = std::optional(run.coder->begin(part, moment, {run.wire.get(), run.wire_bytes}));
      while (round) round = run.coder->next(context.exchange.combine(exchange, *round));
      widen(run, context, exchange);
    }
  }
  const double combined_s = clock_s();
  context.updater.apply(bucket);
  return combined_s;
}

void deliver(Bucket& bucket, const StepContext& context) {
  context.updater.complete(bucket);
  if (!context.updater.spreads()) return;
  const Traced span(context.trace, "broadcast", bucket.name, bytes_of(bucket.weights));
  for (const Buffer weights : bucket.weights) context.exchange.spread(exchange_context(context, bucket), weights);
}

}  // namespace syncopate::sync
