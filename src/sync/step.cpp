// The sentence: a gradient, packed into a bucket, is encoded, combined by an exchange, decoded, and applied.
#include "sync/step.hpp"

#include "sync/traced.hpp"

namespace syncopate::sync {

double step(Bucket& bucket, const StepContext& context, const std::function<double()>& clock_s) {
  {
    const Traced span(context.trace, "exchange", bucket.name, bucket.gradient.bytes().size());
    const compress::Packet packet = bucket.coder->encode(bucket.gradient);
    context.exchange.combine(context.group, packet, {context.algorithm, bucket.name});
    bucket.coder->decode(packet, bucket.gradient);
  }
  const double combined_s = clock_s();
  context.optimizer.apply(bucket);
  return combined_s;
}

void deliver(Bucket& bucket, const StepContext& context) {
  context.optimizer.complete(bucket);
  if (!context.optimizer.spreads()) return;
  const Traced span(context.trace, "broadcast", bucket.name, bytes_of(bucket.weights));
  for (const Buffer weights : bucket.weights)
    context.exchange.spread(context.group, weights, {context.algorithm, bucket.name});
}

}  // namespace syncopate::sync
