// BucketQueue: decides which gradients leave next, by a partition or during the step.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "schedule/dispatch.hpp"

namespace syncopate::sync::planning {

/// One interface for both state machines of schedule/dispatch.
class BucketQueue final {
 public:
  /// An empty partition means that the step decides.
  BucketQueue(const schedule::Partition& partition, const schedule::Timeline& timeline);

  /// True if the step decides: then ranks must agree on their offers. A partition needs no agreement.
  [[nodiscard]] bool need_agreement() const noexcept { return std::holds_alternative<Online>(dispatch_); }
  bool ready(std::size_t gradient);  ///< false if it was already ready
  /// The first gradient of the bucket that could leave now on this rank.
  [[nodiscard]] std::optional<std::size_t> offer() const;
  schedule::Bucket take(std::size_t first);  ///< returns the bucket that leaves, from the gradient agreed on
  [[nodiscard]] bool all_sent() const;
  [[nodiscard]] std::vector<std::size_t> missing() const;
  /// The gradients that must be ready before gradient i can leave: its own bucket and all buckets before it.
  [[nodiscard]] schedule::Bucket company_of(std::size_t i) const;
  void restart();

 private:
  using Fixed = schedule::Dispatch;
  using Online = schedule::OnlineDispatch;
  std::variant<Fixed, Online> dispatch_;
};

}  // namespace syncopate::sync::planning
