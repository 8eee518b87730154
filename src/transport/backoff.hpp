// Backoff: yields the core while a rank spins, and makes waits sleep after a yield that took long.
#pragma once

#include <sched.h>

#include "base/clock.hpp"

namespace syncopate::transport {

/// A thread that yields to a computing program runs again only when that program's time slice ends (milliseconds); a
/// sleeping thread preempts it when woken. A yield longer than `most` therefore means that a program computes on this
/// core, and for kPeriodAsleep waits sleep instead. Used by one thread.
class Backoff final {
 public:
  /// Ranks that spin give the core back within about 10 us.
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
