// Run: consecutive chunks or positions, treated as one.
#pragma once

#include <cstdint>

namespace syncopate::collective::pattern {

/// The half-open range [first, first + count).
struct Run {
  std::uint32_t first = 0, count = 0;
};

}  // namespace syncopate::collective::pattern
