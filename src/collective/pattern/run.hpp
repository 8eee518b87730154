// Run: neighbouring chunks, or positions, taken together.
#pragma once

#include <cstdint>

namespace syncopate::collective::pattern {

/// [first, first + count).
struct Run {
  std::uint32_t first = 0, count = 0;
};

}  // namespace syncopate::collective::pattern
