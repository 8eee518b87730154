// Evaluate: equations 6 to 8 of MG-WFBP for any partition and any cost.
#include "schedule/evaluate.hpp"

#include <algorithm>

namespace syncopate::schedule {

std::vector<double> ready_times(const Timeline& timeline) {
  std::vector<double> ready(timeline.layers.size());
  double now_s = timeline.forward_s;
  for (std::size_t layer = ready.size(); layer-- > 0;) ready[layer] = now_s += timeline.layers[layer].backward_s;
  return ready;
}

std::size_t bytes_of(const Timeline& timeline, const Bucket& bucket) {
  std::size_t bytes = 0;
  for (std::size_t layer = bucket.first; layer <= bucket.last; ++layer) bytes += timeline.layers[layer].bytes;
  return bytes;
}

// When the channel becomes free, all bytes sent so far have taken their share of computing, however they were cut into
// buckets: a gradient that was not ready then is delayed by exactly that share. For a gradient that was ready the
// correction has no effect, because begin_s is a maximum.
Evaluation evaluate(const Timeline& timeline, const Partition& partition, const Cost& cost) {
  const std::vector<double> ready = ready_times(timeline);
  Evaluation result;
  result.compute_s = ready.front();
  double free_s = 0, stretch_s = 0;
  for (const Bucket& bucket : partition) {
    BucketTiming timing{.bucket = bucket, .bytes = bytes_of(timeline, bucket)};
    const auto bytes = static_cast<double>(timing.bytes);
    timing.ready_s = ready[bucket.first] + stretch_s;
    timing.begin_s = std::max(free_s, timing.ready_s);
    timing.end_s = timing.begin_s + cost(bytes);
    result.exchange_s += cost(bytes);
    free_s = timing.end_s;
    stretch_s += cost.cpu_s_per_byte * bytes;
    result.timings.push_back(timing);
  }
  result.iteration_s = std::max(free_s, result.compute_s);
  result.exposed_s = result.iteration_s - result.compute_s;
  return result;
}

}  // namespace syncopate::schedule
