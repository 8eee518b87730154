// Token bucket: the time at which a number of bytes has passed at a given rate; after a pause a burst passes at once.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace syncopate::cache {

/// The generic cell rate algorithm (ITU-T I.371): it stores one time instead of a fill level. Not thread-safe.
class TokenBucket final {
 public:
  TokenBucket(double bytes_per_second, double burst_bytes) : rate_(bytes_per_second), burst_(burst_bytes / rate_) {}

  /// Uses `bytes` of the rate at `now`; returns the time at which they have passed.
  [[nodiscard]] base::Time take(double bytes, base::Time now) {
    due_ = std::max(due_, now) + base::from_seconds(bytes / rate_);
    return std::max(now, due_ - base::from_seconds(burst_));
  }

 private:
  double rate_, burst_;  ///< the burst in seconds
  base::Time due_{};
};

}  // namespace syncopate::cache
