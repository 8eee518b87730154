// Backoff: giving the core to others while awake, and knowing when that costs too much.
#pragma once

#include <sched.h>

#include "base/clock.hpp"

namespace syncopate::transport {

/// Who yields to a program that computes waits for the end of its time slice; who sleeps is woken before it. So after a
/// yield that took longer than ranks that wait take to give the core back, waits sleep for a while. One thread.
class Backoff final {
 public:
  /// Other ranks that wait awake give the core back within some 10 us.
  static constexpr base::Duration kLongYield = std::chrono::microseconds(500);

  explicit Backoff(base::Duration most = kLongYield) noexcept : most_(most) {}

  [[nodiscard]] bool may_stay_awake(base::Time at) const noexcept { return at >= asleep_until_; }
  void yield(base::Time at) noexcept {
    ::sched_yield();
    if (const base::Time back = base::SteadyClock{}.now(); back - at > most_) asleep_until_ = back + kPeriodAsleep;
  }

 private:
  static constexpr base::Duration kPeriodAsleep = std::chrono::milliseconds(20);
  base::Duration most_;
  base::Time asleep_until_{};
};

}  // namespace syncopate::transport
