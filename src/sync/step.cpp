// The sentence: a gradient, packed into a bucket, is encoded, combined by an exchange, decoded, and applied.
#include "sync/step.hpp"

#include "sync/traced.hpp"

namespace syncopate::sync {

double step(Bucket& bucket, const Way& way, const std::function<double()>& clock_s) {
  {
    const Traced span(way.trace, "exchange", bucket.name, bucket.gradient.bytes().size());
    const compress::Packet packet = bucket.coder->encode(bucket.gradient);
    way.exchange.combine(way.group, packet, {way.algorithm, bucket.name});
    bucket.coder->decode(packet, bucket.gradient);
  }
  const double combined_s = clock_s();
  way.optimizer.apply(bucket);
  return combined_s;
}

void deliver(Bucket& bucket, const Way& way) {
  way.optimizer.complete(bucket);
  if (!way.optimizer.spreads()) return;
  const Traced span(way.trace, "broadcast", bucket.name, bytes_of(bucket.weights));
  for (const Buffer weights : bucket.weights) way.exchange.spread(way.group, weights, {way.algorithm, bucket.name});
}

}  // namespace syncopate::sync
