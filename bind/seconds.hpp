// Durations that Python gives as seconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "syncopate/error.hpp"

namespace syncopate::bind {

using Seconds = std::optional<double>;

/// At least one millisecond; none for none. Throws Misuse, which names the argument, for what is not a duration.
inline std::optional<std::chrono::milliseconds> milliseconds(Seconds seconds, const char* name) {
  if (!seconds) return std::nullopt;
  if (!(*seconds > 0) || *seconds > 1e9)
    throw Misuse(std::string(name) + " is out of range; allowed: above 0 to 1e9 seconds");
  return std::chrono::milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(*seconds * 1e3)));
}

}  // namespace syncopate::bind
