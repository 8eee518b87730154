// Dispatch: which bucket to send next. A pure state machine, so that training and simulation run the same one.
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

}  // namespace syncopate::schedule
