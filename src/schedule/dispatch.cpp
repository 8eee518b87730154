// Dispatch: counting, per bucket, the gradients it still waits for.
#include "schedule/dispatch.hpp"

#include <cassert>

namespace syncopate::schedule {

Dispatch::Dispatch(Partition partition, std::size_t layers) : partition_(std::move(partition)), bucket_of_(layers) {
  for (std::size_t bucket = 0; bucket < partition_.size(); ++bucket)
    for (std::size_t layer = partition_[bucket].first; layer <= partition_[bucket].last; ++layer)
      bucket_of_[layer] = bucket;
  restart();
}

void Dispatch::restart() {
  is_ready_.assign(bucket_of_.size(), false);
  waiting_for_.clear();
  for (const Bucket& bucket : partition_) waiting_for_.push_back(bucket.last - bucket.first + 1);
  sent_ = 0;
}

bool Dispatch::ready(std::size_t layer) {
  assert(layer < is_ready_.size());
  if (is_ready_[layer]) return false;
  is_ready_[layer] = true;
  --waiting_for_[bucket_of_[layer]];
  return true;
}

std::optional<std::size_t> Dispatch::next() {
  if (all_sent() || waiting_for_[sent_] > 0) return std::nullopt;
  return sent_++;
}

std::vector<std::size_t> Dispatch::missing() const {
  std::vector<std::size_t> layers;
  for (std::size_t layer = 0; layer < is_ready_.size(); ++layer)
    if (!is_ready_[layer]) layers.push_back(layer);
  return layers;
}

}  // namespace syncopate::schedule
