// Throttled source: delays the reads of another source by a token bucket.
#pragma once

#include <algorithm>
#include <functional>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "syncopate/input.hpp"

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

class Throttled final : public input::Source {
 public:
  /// The clock and the wait that the source uses.
  struct Timing {
    std::function<base::Time()> now;
    std::function<void(base::Time)> wait_until;
  };
  Throttled(const input::Source& source, TokenBucket bucket, Timing timing)
      : source_(source), bucket_(bucket), timing_(std::move(timing)) {}

  [[nodiscard]] std::size_t records() const noexcept override { return source_.records(); }
  [[nodiscard]] std::size_t bytes(std::size_t record) const override { return source_.bytes(record); }
  [[nodiscard]] std::int64_t label(std::size_t record) const override { return source_.label(record); }
  [[nodiscard]] std::string name(std::size_t record) const override { return source_.name(record); }
  [[nodiscard]] std::uint64_t version() const noexcept override { return source_.version(); }
  void read(std::size_t record, std::span<std::byte> into) const override {
    source_.read(record, into);
    const base::Time now = timing_.now();
    timing_.wait_until(
        bucket_.with([&](TokenBucket& bucket) { return bucket.take(static_cast<double>(into.size()), now); }));
  }

 private:
  const input::Source& source_;
  mutable base::Guarded<TokenBucket> bucket_;
  Timing timing_;
};

}  // namespace syncopate::cache
