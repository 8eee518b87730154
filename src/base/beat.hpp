// Beat: when a process shows the others that it lives, and how long it has run.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace syncopate::base {

/// An end of a connection that receives nothing for `silence` has lost the other one; so each sends something in every
/// eighth of it (the interval; at least 5 ms). While this process is stopped, the others' bytes wait for it: of the
/// time between two runs at most two intervals count as their silence.
class Beat final {
 public:
  Beat(Duration silence, Time now) noexcept
      : interval_(std::max<Duration>(silence / 8, std::chrono::milliseconds(5))), last_run_(now), next_(now) {}

  [[nodiscard]] Duration interval() const noexcept { return interval_; }
  [[nodiscard]] Time last_run() const noexcept { return last_run_; }
  /// Time since the last `run` that counts.
  [[nodiscard]] Duration since_run(Time now) const noexcept { return std::min(now - last_run_, 2 * interval_); }
  Duration run(Time now) noexcept {
    const Duration ran = since_run(now);
    last_run_ = now;
    return ran;
  }
  [[nodiscard]] Time next() const noexcept { return next_; }
  /// Whether `next` has come; then the one after it is an interval away.
  [[nodiscard]] bool is_due(Time now) noexcept {
    if (now < next_) return false;
    next_ = now + interval_;
    return true;
  }

 private:
  Duration interval_;
  Time last_run_, next_;
};

}  // namespace syncopate::base
