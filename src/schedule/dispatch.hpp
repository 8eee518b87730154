// Dispatch: which bucket to send next. Pure state machines, so that training and simulation run the same ones.
#pragma once

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
  /// The bucket that could leave now, if there is one.
  [[nodiscard]] std::optional<std::size_t> offer() const;
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

/// The event rule of policy `online`: no partition; whenever the channel is free, every ready gradient that is next in
/// the order leaves, as one bucket. A rank alone decides for itself. Several ranks agree on the least of their offers:
/// a rank joins as soon as it has one, so something leaves every time, what leaves is ready everywhere, and it is the
/// slowest rank that decides, whichever that is.
class OnlineDispatch final {
 public:
  explicit OnlineDispatch(std::size_t layers);

  /// False if the layer was ready already.
  bool ready(std::size_t layer);
  /// The first layer of the largest bucket that could leave now, if there is one. Of several ranks' offers the least is
  /// the one with the highest layer.
  [[nodiscard]] std::optional<std::size_t> offer() const;
  /// What leaves: from `first`, an offer or less than that, up to what left before.
  Bucket take(std::size_t first);
  /// A rank alone: takes its own offer.
  [[nodiscard]] std::optional<Bucket> decide();
  /// Layers from here on have left.
  [[nodiscard]] std::size_t frontier() const noexcept { return frontier_; }
  [[nodiscard]] bool all_sent() const noexcept { return frontier_ == 0; }
  [[nodiscard]] std::vector<std::size_t> missing() const;  ///< layers that are not ready
  void restart();                                          ///< the next step

 private:
  std::vector<bool> is_ready_;
  std::size_t frontier_ = 0;
};

}  // namespace syncopate::schedule
