// The sentence: a gradient, packed into a bucket, is encoded by a codec, combined by an exchange, and decoded.
#include "sync/step.hpp"

namespace syncopate::sync {

Outcome step(Bucket& bucket, const Exchange& exchange, Group& group, const std::string& algorithm) {
  const compress::Packet packet = bucket.coder->encode(bucket.gradient);
  const Outcome outcome = exchange.combine(group, packet, {algorithm, bucket.name});
  bucket.coder->decode(packet, bucket.gradient);
  return outcome;
}

}  // namespace syncopate::sync
