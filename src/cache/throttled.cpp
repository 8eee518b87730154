// The throttled source on the system clock.
#include "cache/throttled.hpp"

#include <cmath>
#include <thread>

#include "base/require.hpp"
#include "syncopate/cache.hpp"

namespace syncopate::cache {

namespace {

constexpr double kBurstBytes = 64 << 10;

}  // namespace

std::unique_ptr<input::Source> throttled(const input::Source& source, double bytes_per_second) {
  base::require(std::isfinite(bytes_per_second) && bytes_per_second > 0, "a rate of {} bytes/s; allowed: above 0",
                bytes_per_second);
  return std::make_unique<Throttled>(source, TokenBucket(bytes_per_second, kBurstBytes),
                                     Throttled::Timing{[] { return base::SteadyClock().now(); },
                                                       [](base::Time until) { std::this_thread::sleep_until(until); }});
}

}  // namespace syncopate::cache
