// BucketQueue: forwards each call to the state machine in use.
#include "sync/planning/bucket_queue.hpp"

#include <cassert>

namespace syncopate::sync::planning {

namespace {
std::variant<schedule::Dispatch, schedule::OnlineDispatch> dispatch_for(const schedule::Partition& partition,
                                                                        const schedule::Timeline& timeline) {
  if (partition.empty()) return schedule::OnlineDispatch(timeline.layers.size());
  return schedule::Dispatch(partition, timeline.layers.size());
}
}  // namespace

BucketQueue::BucketQueue(const schedule::Partition& partition, const schedule::Timeline& timeline)
    : dispatch_(dispatch_for(partition, timeline)) {}

bool BucketQueue::ready(std::size_t gradient) {
  return std::visit([&](auto& dispatch) { return dispatch.ready(gradient); }, dispatch_);
}

std::optional<std::size_t> BucketQueue::offer() const {
  if (const auto* online = std::get_if<Online>(&dispatch_)) return online->offer();
  const auto& fixed = std::get<Fixed>(dispatch_);
  const std::optional<std::size_t> bucket = fixed.offer();
  return bucket ? std::optional(fixed.partition()[*bucket].first) : std::nullopt;
}

schedule::Bucket BucketQueue::take(std::size_t first) {
  if (auto* online = std::get_if<Online>(&dispatch_)) return online->take(first);
  auto& fixed = std::get<Fixed>(dispatch_);
  const schedule::Bucket bucket = fixed.partition()[*fixed.next()];
  assert(bucket.first == first);
  static_cast<void>(first);
  return bucket;
}

bool BucketQueue::all_sent() const {
  return std::visit([](const auto& dispatch) { return dispatch.all_sent(); }, dispatch_);
}

std::vector<std::size_t> BucketQueue::missing() const {
  return std::visit([](const auto& dispatch) { return dispatch.missing(); }, dispatch_);
}

schedule::Bucket BucketQueue::company_of(std::size_t i) const {
  const auto* fixed = std::get_if<Fixed>(&dispatch_);
  return fixed != nullptr ? fixed->partition()[fixed->bucket_of(i)] : schedule::Bucket{i, i};
}

void BucketQueue::restart() {
  std::visit([](auto& dispatch) { dispatch.restart(); }, dispatch_);
}

}  // namespace syncopate::sync::planning
