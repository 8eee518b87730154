// SetClock: a clock that shows what a test sets.
#pragma once

#include "base/clock.hpp"

namespace syncopate::test {

class SetClock final : public base::Clock {
 public:
  /// `time` must outlive this.
  explicit SetClock(const base::Time& time) : time_(time) {}
  [[nodiscard]] base::Time now() const override { return time_; }

 private:
  const base::Time& time_;
};

}  // namespace syncopate::test
