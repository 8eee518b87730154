// Dispatch: which bucket to send next. Pure state machines, so that training and simulation run the same ones.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "schedule/timeline.hpp"

namespace syncopate::schedule {

/// One step of training: gradients become ready in any order; buckets leave in the partition's order, each as soon as
/// all its gradients are ready and the channel is free. A fixed order is what lets ranks agree without talking.
class Dispatch final {
 public:
  /// `partition` must be legal for `layers` layers.
  Dispatch(Partition partition, std::size_t layers);

  /// False if the layer was ready already.
  bool ready(std::size_t layer);
  /// The channel is free: the bucket to send now, if there is one.
  [[nodiscard]] std::optional<std::size_t> next();
  [[nodiscard]] bool all_sent() const noexcept { return sent_ == partition_.size(); }
  [[nodiscard]] std::vector<std::size_t> missing() const;  ///< layers that are not ready
  [[nodiscard]] std::size_t bucket_of(std::size_t layer) const { return bucket_of_[layer]; }
  [[nodiscard]] const Partition& partition() const noexcept { return partition_; }
  void restart();  ///< the next step

 private:
  Partition partition_;
  std::vector<std::size_t> bucket_of_;
  std::vector<bool> is_ready_;
  std::vector<std::size_t> waiting_for_;  ///< by bucket: layers that are not ready
  std::size_t sent_ = 0;                  ///< buckets
};

/// The event rule of policy `online`: no partition; the rank that decides sends, whenever the channel is free, every
/// ready gradient that is next in the order, as one bucket. The others get its decisions and follow them in their
/// order, each as soon as their own gradients are ready: ranks may differ in speed, and still exchange the same
/// buckets.
class OnlineDispatch final {
 public:
  /// Gradients of different types (`timeline` holds them in forward order) do not share a bucket.
  explicit OnlineDispatch(const Timeline& timeline);

  /// False if the layer was ready already.
  bool ready(std::size_t layer);
  /// On the rank that decides, when the channel is free: what to send now, to be announced to the others.
  [[nodiscard]] std::optional<Bucket> decide();
  /// On the others: a decision has arrived. False if it cannot be: it must end where the one before began.
  [[nodiscard]] bool follow(const Bucket& decision);
  /// On the others, when the channel is free: the oldest decision, if its gradients are ready here.
  [[nodiscard]] std::optional<Bucket> next();
  /// Layers from here on have been decided.
  [[nodiscard]] std::size_t frontier() const noexcept { return frontier_; }
  [[nodiscard]] bool all_sent() const noexcept { return frontier_ == 0 && decisions_.empty(); }
  [[nodiscard]] std::vector<std::size_t> missing() const;  ///< layers that are not ready
  void restart();                                          ///< the next step

 private:
  std::vector<bool> starts_type_;  ///< by layer: the one before it is of another type
  std::vector<bool> is_ready_;
  std::deque<Bucket> decisions_;  ///< not followed yet
  std::size_t frontier_ = 0;
};

}  // namespace syncopate::schedule
