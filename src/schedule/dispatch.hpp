// Dispatch: decides which bucket leaves next. Pure state machines that training and simulation share.
#pragma once

#include <optional>
#include <vector>

#include "syncopate/policy.hpp"

namespace syncopate::schedule {

/// One step under a partition. Gradients become ready in any order. Buckets leave in the partition's order, each as
/// soon as all its gradients are ready and the channel is free. Because the order is fixed, ranks need no communication
/// to agree on it.
class Dispatch final {
 public:
  /// `partition` must be legal for `layers` layers.
  Dispatch(Partition partition, std::size_t layers);

  /// Returns false if the layer was already ready.
  bool ready(std::size_t layer);
  /// The next bucket, if it could leave now.
  [[nodiscard]] std::optional<std::size_t> offer() const;
  /// Call it when the channel is free. Returns the bucket to send now, if there is one.
  [[nodiscard]] std::optional<std::size_t> next();
  [[nodiscard]] bool all_sent() const noexcept { return sent_ == partition_.size(); }
  [[nodiscard]] std::vector<std::size_t> missing() const;  ///< layers that are not ready yet
  [[nodiscard]] std::size_t bucket_of(std::size_t layer) const { return bucket_of_[layer]; }
  [[nodiscard]] const Partition& partition() const noexcept { return partition_; }
  void restart();  ///< starts the next step

 private:
  Partition partition_;
  std::vector<std::size_t> bucket_of_;
  std::vector<bool> is_ready_;
  std::vector<std::size_t> waiting_for_;  ///< number of gradients that are not ready, by bucket
  std::size_t sent_ = 0;                  ///< number of buckets sent
};

/// The event rule of policy `online`. There is no partition: whenever the channel is free, all ready gradients that are
/// next in the order leave as one bucket. Several ranks agree on the least of their offers, and a rank makes an offer
/// as soon as one more gradient is ready. So at least one gradient leaves each time, all that leave are ready on every
/// rank, and no rank waits for more than the slowest rank has ready.
class OnlineDispatch final {
 public:
  explicit OnlineDispatch(std::size_t layers);

  /// Returns false if the layer was already ready.
  bool ready(std::size_t layer);
  /// The first layer of the largest bucket that could leave now, if there is one. The least of several offers is the
  /// one with the highest layer number.
  [[nodiscard]] std::optional<std::size_t> offer() const;
  /// Returns the bucket that leaves: from `first`, which is at least this rank's offer, to the last layer not sent yet.
  Bucket take(std::size_t first);
  /// For a single rank: takes its own offer.
  [[nodiscard]] std::optional<Bucket> decide();
  /// The first layer that has left; all later ones have left too.
  [[nodiscard]] std::size_t frontier() const noexcept { return frontier_; }
  [[nodiscard]] bool all_sent() const noexcept { return frontier_ == 0; }
  [[nodiscard]] std::vector<std::size_t> missing() const;  ///< layers that are not ready yet
  void restart();                                          ///< starts the next step

 private:
  std::vector<bool> is_ready_;
  std::size_t frontier_ = 0;
};

}  // namespace syncopate::schedule
