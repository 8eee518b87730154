// Dispatch: counts the gradients that each bucket still waits for.
#include "schedule/dispatch.hpp"

#include <cassert>

#include "schedule/policy.hpp"

namespace syncopate::schedule {

namespace {
std::vector<std::size_t> layers_missing(const std::vector<bool>& is_ready) {
  std::vector<std::size_t> layers;
  for (std::size_t layer = 0; layer < is_ready.size(); ++layer)
    if (!is_ready[layer]) layers.push_back(layer);
  return layers;
}
}  // namespace

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

std::optional<std::size_t> Dispatch::offer() const {
  return all_sent() || waiting_for_[sent_] > 0 ? std::nullopt : std::optional(sent_);
}

std::optional<std::size_t> Dispatch::next() {
  const std::optional<std::size_t> bucket = offer();
  if (bucket) ++sent_;
  return bucket;
}

std::vector<std::size_t> Dispatch::missing() const { return layers_missing(is_ready_); }

OnlineDispatch::OnlineDispatch(std::size_t layers) : is_ready_(layers, false), frontier_(layers) {}

void OnlineDispatch::restart() {
  is_ready_.assign(is_ready_.size(), false);
  frontier_ = is_ready_.size();
}

bool OnlineDispatch::ready(std::size_t layer) {
  assert(layer < is_ready_.size());
  const bool is_first = !is_ready_[layer];
  is_ready_[layer] = true;
  return is_first;
}

std::optional<std::size_t> OnlineDispatch::offer() const {
  std::size_t first = frontier_;
  while (first > 0 && is_ready_[first - 1]) --first;
  return first == frontier_ ? std::nullopt : std::optional(first);
}

Bucket OnlineDispatch::take(std::size_t first) {
  assert(first < frontier_ && offer() && *offer() <= first);
  const Bucket bucket{first, frontier_ - 1};
  frontier_ = first;
  return bucket;
}

std::optional<Bucket> OnlineDispatch::decide() {
  const std::optional<std::size_t> first = offer();
  return first ? std::optional(take(*first)) : std::nullopt;
}

std::vector<std::size_t> OnlineDispatch::missing() const { return layers_missing(is_ready_); }

}  // namespace syncopate::schedule
