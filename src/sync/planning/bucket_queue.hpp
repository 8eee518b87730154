// BucketQueue: which gradients leave next, whether a partition says so or the step itself does.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "schedule/dispatch.hpp"

namespace syncopate::sync::planning {

/// One face for both of the schedule's state machines.
class BucketQueue final {
 public:
  /// An empty partition: the step decides.
  BucketQueue(const schedule::Partition& partition, const schedule::Timeline& timeline);

  /// The step decides: ranks must agree on their offers. Otherwise the partition is the agreement.
  [[nodiscard]] bool need_agreement() const noexcept { return std::holds_alternative<Online>(dispatch_); }
  bool ready(std::size_t gradient);  ///< false if it was
  /// The first gradient of what could leave now, as far as this rank is concerned.
  [[nodiscard]] std::optional<std::size_t> offer() const;
  schedule::Bucket take(std::size_t first);  ///< what leaves: from what was agreed on
  [[nodiscard]] bool all_sent() const;
  [[nodiscard]] std::vector<std::size_t> missing() const;
  /// What must be ready for gradient i to leave, overlapping what leaves before.
  [[nodiscard]] schedule::Bucket company_of(std::size_t i) const;
  void restart();

 private:
  using Fixed = schedule::Dispatch;
  using Online = schedule::OnlineDispatch;
  std::variant<Fixed, Online> dispatch_;
};

}  // namespace syncopate::sync::planning
