// Time and clocks. A clock is passed as an argument, so that a simulator can provide its own.
#pragma once

#include <chrono>

namespace syncopate::base {

using Duration = std::chrono::nanoseconds;
/// Nanoseconds since an arbitrary start that never goes back.
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline constexpr Time kNever = Time::max();

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }
};

[[nodiscard]] inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
[[nodiscard]] inline Duration from_seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace syncopate::base
