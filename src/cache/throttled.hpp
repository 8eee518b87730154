// Throttled source: delays the reads of another source by a token bucket.
#pragma once

#include <functional>

#include "base/guarded.hpp"
#include "cache/token_bucket.hpp"
#include "syncopate/input.hpp"

namespace syncopate::cache {

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
